"""Adapters that make a rewriter of the embedded model: the shipped one, or one of the user's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from query_mutator.base.errors import UserError, refused
from query_mutator.base.untrusted import open_file

SHIPPED = Path(__file__).parents[1] / "data" / "rewriter" / "clarify.gguf"
ADAPTER_FILE = "adapter.gguf"
"""What `train-mutator` and `export-adapter` call it in their directories."""
NONE = "none"
MAGIC = b"GGUF"
CHUNK = 1 << 20


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
    path = Path(named).expanduser() if named is not None else SHIPPED
    if path.is_dir():
        path = _in_directory(path)
    with refused(f"cannot read the rewriter {path}"), open_file(path, "the rewriter") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise UserError(
                f"{path} is not a GGUF file; --rewriter takes an adapter for the embedded model "
                "(query-mutator export-adapter makes one of what PEFT saved)"
            )
        digest = hashlib.sha256(MAGIC)
        while piece := file.read(CHUNK):
            digest.update(piece)
    return Rewriter(path, digest.hexdigest())


def _in_directory(directory: Path) -> Path:
    file = directory / ADAPTER_FILE
    if not file.is_file():
        inner = directory if (directory / "adapter_config.json").is_file() else None
        inner = directory / "adapter" if (directory / "adapter").is_dir() else inner
        how = f"; make it with: query-mutator export-adapter {inner}" if inner else ""
        raise UserError(f"{directory} holds no {ADAPTER_FILE}{how}")
    return file
