"""A model's answer as plain sentences: what is quoted, code or markup is taken out first."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOOKED_AT = 2400
"""Characters of an answer that are read: a refusal further down comes after an answer."""

_CODE = re.compile(r"```.{0,2400}?(?:```|\Z)|`[^`\n]{1,200}`", re.DOTALL)
_QUOTED = re.compile(r'"[^"]{2,1200}(?:"|\Z)')
_TOKEN = re.compile(r"<\|?/?[\w ]{1,30}\|?>|\[/?(?:INST|SYS|EOS|BOS|PAD)\]", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,3}[.):]|\(?[a-h][.)])\s*")
_SENTENCE = re.compile(r"(?<=[.!?…:])\s+|\.{3,}\s*|\n+")
_CONTRACTIONS = [
    (re.compile(pattern), full)
    for pattern, full in (
        (r"\b(?:can't|cant|can not)\b", "cannot"),
        (r"\b(?:won't|wont)\b", "will not"),
        (r"\b(?:shan't)\b", "will not"),
        (r"\b(?:ain't)\b", "am not"),
        (r"\bi ?'?m\b", "i am"),
        (r"\bwe're\b", "we are"),
        (r"\b(i|we|it|that|you|they)'d\b", r"\1 would"),
        (r"\b(i|we|it|that|you|they)'ll\b", r"\1 will"),
        (r"\b(i|we|you|they)'ve\b", r"\1 have"),
        (r"\b(it|that|there|here|what|he|she)'s\b", r"\1 is"),
        (r"\blet's\b", "let us"),
        (r"\b(do|does|did|would|could|should|is|are|was|were|has|have|had)n'?t\b", r"\1 not"),
    )
]


@dataclass(frozen=True)
class Sentence:
    """A sentence in plain words, and whether it is an item of a list."""

    words: str
    is_item: bool = False

    @property
    def asks(self) -> bool:
        return self.words.endswith("?")


def without_markup(answer: str) -> str:
    """The part that is looked at, without the tokens that chat templates leave behind."""
    text = answer[:LOOKED_AT].replace("’", "'").replace("‘", "'")
    text = text.replace("“", '"').replace("”", '"').replace("\xa0", " ")
    return _TOKEN.sub(" ", text).strip()


def without_quotations(text: str) -> tuple[str, bool]:
    """The text without code and quotations, and whether there was code."""
    bare = _CODE.sub(" ", text)
    return _QUOTED.sub(" ", bare), "```" in text


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text, plain: lower case, contractions written out."""
    found = []
    for line in text.split("\n"):
        item = _ITEM.match(line)
        for part in _SENTENCE.split(line[item.end() :] if item else line):
            if words := plain(part):
                found.append(Sentence(words, bool(item)))
    return found


def plain(text: str) -> str:
    """Lower case, single spaces, no emphasis marks, contractions written out.

    >>> plain("I'm **sorry**, but I can’t.".replace("’", "'"))
    'i am sorry, but i cannot.'
    """
    words = re.sub(r"[*_]", "", text)
    words = " ".join(re.sub(r"[#\[\]()]", " ", words).lower().split())
    for pattern, full in _CONTRACTIONS:
        words = pattern.sub(full, words)
    return words
