"""Drops the words that people put between themselves and their question."""

from __future__ import annotations

import re

_SOUND = r"u+m+|u+h+m*|e+r+m+|e+r+|h+m+|a+h+|o+h+|ugh+|haha+|hehe+|lol"
_ASIDE = (
    r"you know|ya know|i mean|i guess|i think|i believe|sort of|kind of|kinda|or something|or so"
    r"|if you know|if you can|whenever you have a moment|just wondering|quick question|quick one"
    r"|not gonna lie|hang on|let me think|real quick|by the way|btw|tbh|honestly|basically|actually"
    r"|anyway|anyways|please|pls|plz|thanks|thank you|thx|cheers|again|right|yeah|well|ok|okay|like"
)
_OPENING = (
    r"so+|and|but|now|then|like|hey|hi|hello|ok|okay|well|yeah|yes|also|actually|sorry|basically"
    r"|anyway|just|please|pls|plz|dude|bro|guys|quick question|hey there|excuse me"
    r"|do (?:you|u) know|(?:can|could) (?:you|u) (?:please )?tell me|tell me|i (?:was|am) wondering"
    r"|i wonder|please tell me|does anyone know|any idea"
)
SOUND = re.compile(rf"(?:\b(?:{_SOUND})\b[\s,.]*)+", re.IGNORECASE)
SO_LIKE = re.compile(r"\b(so|is it|and|but|what|how many)( like)\b[,\s]+", re.IGNORECASE)
ASIDE = re.compile(rf"\s*,\s*(?:{_ASIDE})\s*(?=[,.?!]|$)", re.IGNORECASE)
"""Only between commas or at the end: `you know`, `like` and `right` are often meant."""
OPENING = re.compile(rf"^\W*(?:(?:{_OPENING})\b[\s,:.]*)+", re.IGNORECASE)


def drop_filler(question: str) -> str:
    """The question without sounds, asides and words of greeting; itself where nothing else is left.

    >>> drop_filler("so um like which metal is it, you know, the reddish one")
    'which metal is it, the reddish one'
    >>> drop_filler("How do you know that like poles repel?")
    'How do you know that like poles repel?'
    """
    text = SOUND.sub("", question)
    text = ASIDE.sub("", text)
    text = SO_LIKE.sub(r"\1 ", text)
    opening = OPENING.match(text)
    if opening and opening.end() < len(text):
        text = text[opening.end() :]
    text = re.sub(r"\s+(,)", r"\1", text)
    text = re.sub(r",(\s*,)+", ",", text).strip(" ,")
    return text or question
