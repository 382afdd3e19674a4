"""Edits of a question that need no model: what `edits` in an operator file can name."""

from __future__ import annotations

from collections.abc import Callable

from query_mutator.english import (
    ask_in_full,
    calm_down,
    capitalise_names,
    correct_spelling,
    correct_typing,
    drop_asides,
    drop_chatter,
    drop_filler,
    write_out,
)

Edit = Callable[[str], str]

EDITS: dict[str, Edit] = {
    "spelling": correct_spelling,
    "calm": calm_down,
    "chatter": drop_chatter,
    "abbreviations": write_out,
    "asides": drop_asides,
    "typing": correct_typing,
    "filler": drop_filler,
    "names": capitalise_names,
    "telegram": ask_in_full,
}


def apply_edits(question: str, names: tuple[str, ...]) -> str:
    """The question after the named edits, in their order, begun and ended like a question.

    A text of several lines stays as it is: it may be code or a table.

    >>> apply_edits("um so wat is the captial of peru", ("filler", "spelling", "names"))
    'What is the capital of Peru?'
    """
    if "\n" in question.strip():
        return question
    edited = question
    for name in names:
        edited = EDITS[name](edited)
    edited = edited.strip()
    if edited.endswith((".", "!", ":", '"', "'")):
        return edited[:1].upper() + edited[1:]
    edited = edited.rstrip(" ,;?")
    return f"{edited[:1].upper()}{edited[1:]}?" if edited else question
