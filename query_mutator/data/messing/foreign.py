"""Twins in another language's word order."""

from __future__ import annotations

import re
from dataclasses import replace

from query_mutator.data.messing.asked import Asked, verbs
from query_mutator.data.messing.phrases import Phrases
from query_mutator.data.messing.wording import in_full, parts, uncapitalised

ADJECTIVES = (
    "big large small little tiny long short tall high deep wide narrow thin thick round flat hard soft hot cold "
    "dry wet warm young old dead wild white black red green yellow brown dark bright famous ancient natural "
    "wooden sharp heavy huge loud sticky sweet human female"
)
AFTER_ITS_NOUN = re.compile(
    rf"\b(the|an?) ({ADJECTIVES.replace(' ', '|')}) ([a-z]+)\b(?= (?:of|with|that|in|on|at|from|to|which)\b|,|$)"
)
SHARES: tuple[tuple[str, str, float], ...] = (
    (r"\bthat (?=[a-z]+s\b|[a-z]+ed\b|is\b|are\b|do\b)", "which ", 0.6),
    (r"(?<!so )\bthat (?=you|we|people|the|a)", "what ", 0.35),
    (r"\bpeople\b", "the people", 0.35),
    (r"\b(?:usually|normally)\b", "normal", 0.3),
    (r"\byou use\b", "one uses", 0.35),
    (r"\byou\b", "we", 0.15),
    (
        r"\bto (?=(?:make|get|drain|turn|reach|press|put|keep|tell|find|open|protect|watch|flatten)\b)",
        "for to ",
        0.5,
    ),
    (r"\bmade of\b", "made from", 0.5),
    (r"\bof (?=a |an |the )", "from ", 0.3),
    (r"\bin (?=Europe|Africa|Asia|space|medieval|ancient)", "in the ", 0.5),
    (r"\b(?:a|an) (?=[a-z])", "", 0.35),
    (r"\b(?:a|an) (?=[a-z])", "one ", 0.15),
    (r"\bthe (?=[a-z])", "", 0.25),
    (r"\b(with|on|in|from) (?=[a-z]+s\b)", r"\1 the ", 0.35),
    (r"\bwho (?=[a-z])", "which ", 0.4),
    (r"\bmuch\b|\bvery\b", "very much", 0.1),
    (r"\bsomebody\b", "some person", 0.4),
    (r"\bit hits\b", "it is hitting", 0.5),
    (r"\b[Hh]ow many (?=[a-z])", "how much of ", 0.2),
    (r"\bare in\b", "it has in", 0.5),
    (r"\bare there in\b", "it gives in", 0.5),
    (r"\bis that\b", "it is", 0.5),
    (r"\bfor a living\b", "as profession", 0.6),
    (r"\bwith (?=a|two|many|no)", "having ", 0.3),
    (r"\bso that\b", "that", 0.5),
    (r"\bwhen (?=you|we|it|a)", "if ", 0.4),
    (r"\bsuch as\b", "like for example", 0.6),
    (r"\b(\w+)ly (\w+)", r"\1 \2", 0.15),
    (r"\bcan\b", "is able to", 0.25),
    (r"\bwhose\b", "which has the", 0.3),
)
"""What is often said otherwise, and in what share of its places."""
BEING = 0.3
COUNTING: tuple[tuple[str, str, float], ...] = (
    (r"\b(hold|buy|run|fill|share|cost|put|pay|get|give)s\b", r"\1", 0.5),
    (r"\b(\w+) had\b", r"\1 was having", 0.4),
    (r"\bhas\b", "is having", 0.3),
    (r"\b(A|a|an|one) (?=[a-z])", r"", 0.4),
    (r"\band (?=buys|gave|gets|half)", "and then ", 0.4),
    (r"\b(\d+) (of them)\b", r"from them \1", 0.5),
    (r"\bevery\b", "each", 0.5),
    (r"^Today is", "Today we have", 0.6),
    (r"\b(on) a\b", r"\1 the", 0.5),
)


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
        text = AFTER_ITS_NOUN.sub(r"\1 \3 \2", text, count=1)
    bend = [rule for rule in SHARES if phrases.chance(rule[2])]
    for pattern, other, _ in phrases.random.sample(bend, min(5, len(bend))):
        text = re.sub(pattern, other, text, count=1)
    return re.sub(r"\b[a-z]+s\b", lambda match: _going_on(match[0], phrases), text, count=1)


def _counting(context: str, phrases: Phrases) -> str:
    """What was said before the question, with other verbs and small words."""
    for pattern, other, share in COUNTING:
        if phrases.chance(share):
            context = re.sub(pattern, other, context, count=1)
    return context


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
