"""The page beside an exported adapter: what it is, what it was trained on, and how good it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from query_mutator.base.untrusted import parse_json, read_text
from query_mutator.operators.tuned import TUNED_INSTRUCTION
from query_mutator.runs.directory import CONFIG, SUMMARY
from query_mutator.tuning.export.bases import Base

LONGEST_SHOWN = 200
LOOKS, HELDOUT, EXACT = "looks", "heldout_loss", "exact_rewrites"
"""Its looks at held-out pairs, dozens of them, and two of their figures."""


def card(
    title: str, base: Base, files: Sequence[tuple[str, str]], commands: Sequence[str], run: Path
) -> str:
    """The text of README.md; `run` is the trainer's directory, of which it tells what is there."""
    licence = f" ({base.licence})" if base.licence else ""
    lines = [
        f"# {title}",
        "",
        f"A LoRA adapter that makes {base.name}{licence} rewrite questions: a question goes in, "
        "the same question in clear words comes out.",
        f'It is asked as a chat: system "{TUNED_INSTRUCTION}", then the question; temperature 0.',
        "",
        "| file | what it is |",
        "| --- | --- |",
        *(f"| `{name}` | {what} |" for name, what in files),
        "",
        "As a model of Ollama:",
        "",
        "```",
        *commands,
        "```",
    ]
    for heading, name in (("Trained with", CONFIG), ("How good it is", SUMMARY)):
        if rows := _rows(run / name):
            lines += ["", f"## {heading}", "", "| | |", "| --- | --- |"]
            lines += [f"| {key} | {value} |" for key, value in rows]
    return "\n".join(lines) + "\n"


def _rows(file: Path) -> list[tuple[str, str]]:
    """The plain values in a JSON file, nested ones by their path; none where it cannot be read."""
    if not file.is_file():
        return []
    try:
        return list(_plain(parse_json(read_text(file, "the run's file"), deepest=10), ()))
    except ValueError:
        return []


def _plain(value: Any, path: tuple[str, ...]) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [row for key, item in value.items() for row in _plain(item, (*path, str(key)))]
    if path == (LOOKS,):
        return [("best look", shown)] if (shown := _best_look(value)) else []
    if isinstance(value, list):
        return [(" ".join(path), _cell(", ".join(map(_text, value))))] if value else []
    return [] if value is None else [(" ".join(path), _cell(_text(value)))]


def _best_look(looks: Any) -> str:
    """The figures of the look at which held-out pairs were learned best, or else of the last."""
    found = [look for look in looks if isinstance(look, dict)] if isinstance(looks, list) else []
    judged = [look for look in found if isinstance(look.get(HELDOUT), int | float)]
    best = min(judged, key=lambda look: look[HELDOUT]) if judged else (found or [{}])[-1]
    figures = {"step": "step", HELDOUT: "held-out loss", EXACT: "share exact"}
    told = [f"{name} {_text(best[key])}" for key, name in figures.items() if key in best]
    return _cell(", ".join(told))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    # The card goes where the adapter goes: the folders of whoever trained it are left out.
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else str(value)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())[:LONGEST_SHOWN]
