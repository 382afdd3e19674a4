"""From a PEFT adapter to a directory with all that llama.cpp, Ollama and a reader need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from query_mutator.base.adapter_files import ADAPTER_FILE
from query_mutator.base.errors import UserError, refused
from query_mutator.base.files import write_atomically
from query_mutator.tuning.export.bases import Base, find_base
from query_mutator.tuning.export.card import card
from query_mutator.tuning.export.gguf_files import (
    layers_for,
    write_lora,
    write_merged,
)
from query_mutator.tuning.export.modelfile import modelfile, ollama_commands
from query_mutator.tuning.export.peft_adapter import read_adapter
from query_mutator.tuning.settings import MERGED_TYPES

MODELFILE = "Modelfile"
CARD = "README.md"


@dataclass(frozen=True)
class Exported:
    """What was written, and how it becomes a model of Ollama's."""

    adapter: Path
    merged: Path | None
    modelfile: Path
    card: Path
    ollama_commands: tuple[str, str]


def export_adapter(
    adapter_dir: Path,
    base: str,
    output: Path,
    *,
    merged: str | None = None,
    half: bool = True,
) -> Exported:
    """Writes adapter.gguf, a Modelfile and a card to `output`, and on request a merged GGUF.

    `base` is the model that the adapter was trained on: `embedded`, a GGUF, a directory or a hub's
    name. `half` writes the adapter in float16, else in float32. `merged` is q8_0, q4_0 or f16.
    """
    merged = merged.lower() if merged else None
    if merged:
        _check_type(merged)
    adapter, model = read_adapter(adapter_dir), find_base(base)
    if merged:
        _check_is_gguf(base, model)
    layers = layers_for(adapter, model)
    with refused(f"cannot make {output}"):
        output.mkdir(parents=True, exist_ok=True)
    merged_file = output / _merged_name(merged) if merged else None
    if merged and merged_file:
        write_merged(merged_file, layers, model, scale=adapter.scale, merged=merged)
    write_lora(output / ADAPTER_FILE, layers, model, alpha=adapter.alpha, half=half)
    commands = _write_texts(output, adapter_dir, model, merged_file)
    return Exported(output / ADAPTER_FILE, merged_file, output / MODELFILE, output / CARD, commands)


def check_can_be_merged(base: str, merged: str) -> None:
    """Refuses, before any work is done, what no merged GGUF can be made of."""
    _check_type(merged.lower())
    _check_is_gguf(base, find_base(base))


def is_exported(output: Path, merged: str | None) -> bool:
    """Whether `export_adapter` has written all its files there."""
    files = [ADAPTER_FILE, MODELFILE, CARD, *([_merged_name(merged.lower())] if merged else [])]
    return all((output / file).is_file() for file in files)


def _merged_name(merged: str) -> str:
    return f"merged-{merged}.gguf"


def _check_type(merged: str) -> None:
    if merged not in MERGED_TYPES:
        raise UserError(f"a merged GGUF is of {', '.join(MERGED_TYPES)}; not of {merged[:40]!r}")


def _check_is_gguf(base: str, model: Base) -> None:
    if model.gguf is None:
        raise UserError(
            f"a merged GGUF is made of a base that is a GGUF, and {base} is none: convert it with "
            "llama.cpp's convert_hf_to_gguf.py and name the file as the base"
        )


def _write_texts(
    output: Path, adapter_dir: Path, base: Base, merged_file: Path | None
) -> tuple[str, str]:
    words = re.sub(r"[^a-z0-9._-]+", "-", output.resolve().name.casefold()).strip("-._")
    commands = ollama_commands(words or "rewriter")
    files = [(ADAPTER_FILE, "the adapter, for llama.cpp (`--lora`), Ollama and `--rewriter`")]
    if merged_file:
        files.append((merged_file.name, "the base with the adapter in its weights"))
    files.append((MODELFILE, "what Ollama makes a model of"))
    texts = {
        MODELFILE: modelfile(
            base, adapter=ADAPTER_FILE, merged=merged_file.name if merged_file else None
        ),
        CARD: card(output.resolve().name, base, files, commands, adapter_dir.resolve().parent),
    }
    for file, text in texts.items():
        with refused(f"cannot write {output / file}"):
            write_atomically(output / file, partial(_write, text))
    return commands


def _write(text: str, file: BinaryIO) -> None:
    file.write(text.encode())
