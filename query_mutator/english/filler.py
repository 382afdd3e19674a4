"""Drops the words that people put between themselves and their question."""

from __future__ import annotations

import re

SOUND = re.compile(
    r"(?:\b(?:[Uu]m+|[Uu]h+m*|[Ee]rm+|[Hh]mm+|[Uu]gh+|[Hh]aha\w*|[Hh]ehe\w*)\b[\s,.]*)+"
)
"""Nothing in capitals, and not `er`, `ah` or `lol`: they may be what is asked about."""
_ASIDE = (
    r"you know|ya know|i mean|i guess|i think|i believe|sort of|kind of|kinda|or something|or so"
    r"|if you know|if you can|whenever you have a moment|just wondering|quick question|quick one"
    r"|not gonna lie|hang on|let me think|real quick|by the way|btw|tbh|honestly|basically|actually"
    r"|anyway|anyways|please|pls|plz|thanks|thank you|thx|cheers|again|right|yeah|well|ok|okay|like"
    r"|er|ah|oh|lol"
)
ASIDE = re.compile(rf",\s?(?:{_ASIDE})(?=[,.?!]|$)", re.IGNORECASE)
"""Only between commas or at the end: `you know`, `like` and `right` are often meant."""
SO_LIKE = re.compile(r"\b(so|is it|and|but|what|how many)( like)\b[,\s]+", re.IGNORECASE)
_WH = r"(?:wh?at|w[hi]+ch|wh?en|whos?e?|whom|where|why|how|wh?ats)\b"
_ALWAYS = (
    r"so+|and|but|hey|hey there|ok|okay|yeah|also|basically|anyway|please|pls|plz|dude|bro"
    r"|quick question|excuse me"
)
_BEFORE_A_QUESTION = (
    r"do (?:you|u) know|(?:can|could) (?:you|u) (?:please )?tell me|(?:please )?tell me"
    r"|i (?:was|am) wondering|i wonder|does anyone know|any idea|like|well|just|now|then|hello|hi"
)
_BEFORE_A_COMMA = r"like|well|now|then|hello|hi|yes|sorry|actually|right|er|ah|oh|lol|honestly"
OPENING = re.compile(
    rf"^\W*(?:(?:(?:{_ALWAYS})\b(?=[\s,:.])|(?:{_BEFORE_A_COMMA})(?=,)"
    rf"|(?:{_BEFORE_A_QUESTION})\b(?=\W+{_WH}))[\s,:.]*)+",
    re.IGNORECASE,
)


def drop_filler(question: str) -> str:
    """The question without sounds, asides and words of greeting; itself where nothing else is left.

    >>> drop_filler("so um like which metal is it, you know, the reddish one")
    'which metal is it, the reddish one'
    >>> drop_filler("Like poles repel, how do you know?")
    'Like poles repel, how do you know?'
    """
    text = SOUND.sub("", " ".join(question.split()))
    text = SO_LIKE.sub(r"\1 ", ASIDE.sub("", text))
    if opening := OPENING.match(text):
        text = text[opening.end() :]
    text = re.sub(r",( ?,)+", ",", text.replace(" ,", ",")).strip(" ,")
    return text or question
