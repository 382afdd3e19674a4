"""Twins in another language's word order."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from query_mutator.data.messing.asked import Asked, verbs
from query_mutator.data.messing.phrases import Phrases, lists, words
from query_mutator.data.messing.wording import in_full, parts, uncapitalised

BEING = 0.3


def nonnative(asked: Asked, phrases: Phrases, category: str) -> str:
    """The question as somebody asks it who thinks in another language."""
    said = {
        name: _bent(part, phrases)
        for name, part in parts(asked).items()
        if name in ("thing", "rest", "noun", "free", "clause")
    }
    name = asked.kind.value
    if asked.plural and phrases.has("foreign", f"{name}_many"):
        name += "_many"
    values = {**parts(asked), **said}
    text = phrases.say("foreign", name, **values)
    if asked.context:
        asked = replace(asked, context=_counting(asked.context, phrases))
        text = in_full(asked, uncapitalised(text), ". " if phrases.chance(0.6) else ", and ")
        text = re.sub(r"\. ([a-z])", lambda match: f". {match[1].upper()}", text)
    text = text[:1].upper() + text[1:]
    if phrases.chance(0.18):
        text = re.sub(r"\?$", "", text)
    return " ".join(text.split())


def _bent(text: str, phrases: Phrases) -> str:
    """The words in another order and with other small words."""
    if phrases.chance(0.35):
        text = _adjective_last().sub(r"\1 \3 \2", text, count=1)
    bend = [rule for rule in lists("foreign")["bent"] if phrases.chance(rule[2])]
    for pattern, other, _ in phrases.random.sample(bend, min(5, len(bend))):
        text = re.sub(pattern, other, text, count=1)
    return re.sub(r"\b[a-z]+s\b", lambda match: _going_on(match[0], phrases), text, count=1)


def _counting(context: str, phrases: Phrases) -> str:
    """What was said before the question, with other verbs and small words."""
    for pattern, other, share in lists("foreign")["counting"]:
        if phrases.chance(share):
            context = re.sub(pattern, other, context, count=1)
    return context


@cache
def _adjective_last() -> re.Pattern[str]:
    """An adjective before a noun that is followed by more about it."""
    adjectives = "|".join(sorted(words("adjectives")))
    more = r"(?= (?:of|with|that|in|on|at|from|to|which)\b|,|$)"
    return re.compile(rf"\b(the|an?) ({adjectives}) ([a-z]+)\b{more}")


def _going_on(verb: str, phrases: Phrases) -> str:
    """`grows` as `is growing`, in some cases."""
    stem = verb[:-1]
    if (
        verb not in verbs()
        or verb in ("does", "has", "lies", "ties", "goes")
        or not phrases.chance(BEING)
    ):
        return verb
    if stem.endswith("ie") or re.search(r"(?:sh|ch|ss|x)e$", stem):
        return verb
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]", stem):
        stem += stem[-1]
    return f"is {stem[:-1] if stem.endswith('e') and not stem.endswith('ee') else stem}ing"
