"""Which words of a text a rewrite took out, and which it put in."""

from __future__ import annotations

import difflib
import re

from query_mutator.reports.html.markup import Markup, element, join, plain

MOST_WORDS = 400


def marked(before: str, after: str) -> tuple[Markup, Markup]:
    """The two texts, what only one of them has marked in it.

    >>> marked("wat is it", "what is it?")[1]
    '<ins>what</ins> is it<ins>?</ins>'
    """
    old, new = _words(before), _words(after)
    removed: list[Markup | str] = []
    added: list[Markup | str] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            removed.append("".join(old[start:end]))
            added.append("".join(new[new_start:new_end]))
            continue
        removed += _mark("del", old[start:end])
        added += _mark("ins", new[new_start:new_end])
    return join(*removed), join(*added)


def _words(text: str) -> list[str]:
    """The words, blanks and signs of a text; what is beyond the most of them is one more."""
    found = re.findall(r"\s+|\w+|[^\w\s]", plain(text))
    few, rest = found[: 2 * MOST_WORDS], found[2 * MOST_WORDS :]
    return [*few, "".join(rest)] if rest else few


def _mark(tag: str, words: list[str]) -> list[Markup | str]:
    """The words in one mark; blanks around them are not marked."""
    text = "".join(words)
    inner = text.strip()
    if not inner:
        return [text]
    start = text.index(inner)
    return [text[:start], element(tag, inner), text[start + len(inner) :]]
