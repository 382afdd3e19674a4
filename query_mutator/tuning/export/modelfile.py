"""What Ollama is told to make a model of a base and an adapter, or of the two in one file."""

from __future__ import annotations

from pathlib import Path

from query_mutator.operators.tuned import TUNED_INSTRUCTION
from query_mutator.tuning.export.bases import Base

CHATML_MARK = "<|im_start|>"
CHATML = """{{- range .Messages }}<|im_start|>{{ .Role }}
{{ .Content }}<|im_end|>
{{ end }}<|im_start|>assistant
"""
"""As transformers' template of SmolLM2 and Qwen puts a chat; Ollama has no Jinja."""


def modelfile(base: Base, *, adapter: str, merged: str | None) -> str:
    """The text of a Modelfile: question in, rewrite out, asked as in training."""
    lines = [f"FROM ./{merged}"] if merged else [f"FROM {base.ollama}", f"ADAPTER ./{adapter}"]
    if not merged and _is_of_links(base.ollama):
        lines.insert(0, "# Ollama takes no folder of links: put a copy, made by cp -rL, into FROM")
    if CHATML_MARK in base.chat_template:
        lines += [f'TEMPLATE """{CHATML}"""', "PARAMETER stop <|im_end|>"]
    lines += [
        f'SYSTEM "{TUNED_INSTRUCTION}"',
        "PARAMETER temperature 0",
        "PARAMETER num_predict 64",
    ]
    return "\n".join(lines) + "\n"


def _is_of_links(place: str) -> bool:
    """Whether a folder's files are links, as those of a snapshot in the hub's cache are."""
    return (Path(place) / "config.json").is_symlink()


def ollama_commands(name: str) -> tuple[str, str]:
    """The two commands that make it a model of Ollama's and try it, beside the Modelfile."""
    return f"ollama create {name} -f Modelfile", f'ollama run {name} "wat is teh captial of peru"'
