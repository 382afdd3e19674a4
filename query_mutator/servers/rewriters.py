"""Adapters that make a rewriter of the embedded model: the shipped one, or one of the user's."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from query_mutator.base.adapter_files import ADAPTER_FILE, PEFT_CONFIG, PEFT_DIRECTORY
from query_mutator.base.errors import UserError, refused
from query_mutator.base.terminal import printable
from query_mutator.base.untrusted import open_file

SHIPPED = Path(__file__).parents[1] / "data" / "rewriter" / "clarify.gguf"
NONE = "none"
MAGIC = b"GGUF"
CHUNK = 1 << 20
MOST_CONTENDERS = 8
"""Each is served by itself, which takes some 220 MB."""


@dataclass(frozen=True)
class Rewriter:
    """An adapter for the embedded model."""

    path: Path
    sha256: str


def find_rewriter(named: str | Path | None) -> Rewriter | None:
    """The adapter the user named; the shipped one, if it is there, where none is named.

    `none` is for no adapter at all.
    """
    if named == NONE or (named is None and not SHIPPED.is_file()):
        return None
    return _read(Path(named).expanduser() if named is not None else SHIPPED, "--rewriter")


def find_contenders(named: Sequence[str | Path]) -> dict[str, Rewriter]:
    """The adapters to compare, each under the name of its directory or file.

    Where two have the same, the folders above tell them apart.
    """
    if len(named) > MOST_CONTENDERS:
        raise UserError(
            f"--contender is given {len(named)} times; all are served at once, so at most "
            f"{MOST_CONTENDERS} are compared: evaluate them in turns"
        )
    found: list[Rewriter] = []
    for one in named:
        if one == NONE:
            raise UserError("--contender takes an adapter; without one there is `unchanged`")
        rewriter = _read(Path(one).expanduser(), "--contender")
        if same := next((other for other in found if other.sha256 == rewriter.sha256), None):
            raise UserError(f"--contender {one} is the adapter in {same.path}: name each once")
        found.append(rewriter)
    return dict(zip(_names([one.path for one in found]), found, strict=True))


def _names(files: Sequence[Path]) -> list[str]:
    """A name for each file, by as many of its folders as tell it from the others."""
    parts = [_parts(file) for file in files]
    depths = [1] * len(files)
    names = _joined(parts, depths)
    while len(set(names)) < len(names):
        longer = [
            min(depth + (names.count(name) > 1), len(own))
            for depth, name, own in zip(depths, names, parts, strict=True)
        ]
        if longer == depths:
            name = next(name for name in names if names.count(name) > 1)
            raise UserError(f"two contenders are called {name}: rename one")
        depths, names = longer, _joined(parts, longer)
    return names


def _parts(file: Path) -> tuple[str, ...]:
    """The folders of an adapter and its own name: that of its directory, if it has one."""
    path = Path(os.path.abspath(file))
    return path.parent.parts if path.name == ADAPTER_FILE else path.with_suffix("").parts


def _joined(parts: Sequence[Sequence[str]], depths: Sequence[int]) -> list[str]:
    return [printable("/".join(own[-depth:])) for own, depth in zip(parts, depths, strict=True)]


def _read(path: Path, flag: str) -> Rewriter:
    """The adapter at a path that was given with a flag."""
    if path.is_dir():
        path = _in_directory(path)
    with refused(f"cannot read the rewriter {path}"), open_file(path, "the rewriter") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise UserError(
                f"{path} is not a GGUF file; {flag} takes an adapter for the embedded model "
                "(query-mutator export-adapter makes one of what PEFT saved)"
            )
        digest = hashlib.sha256(MAGIC)
        while piece := file.read(CHUNK):
            digest.update(piece)
    return Rewriter(path, digest.hexdigest())


def _in_directory(directory: Path) -> Path:
    file = directory / ADAPTER_FILE
    if not file.is_file():
        inner = directory if (directory / PEFT_CONFIG).is_file() else None
        inner = directory / PEFT_DIRECTORY if (directory / PEFT_DIRECTORY).is_dir() else inner
        how = f"; make it with: query-mutator export-adapter {inner}" if inner else ""
        raise UserError(f"{directory} holds no {ADAPTER_FILE}{how}")
    return file
