"""Whether a model's rewrite still asks what was asked: told before anybody answers it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from query_mutator.models.encoders import Vectors
from query_mutator.models.flows import Encode
from query_mutator.objectives.drift import CALIBRATED
from query_mutator.objectives.drift.detector import shipped_detector
from query_mutator.objectives.drift.pair import Compared

DRIFTED = "drift "
"""How the reason begins where it is not told by a rule."""
COUNTING = {"many", "cost"}
"""Kinds of questions whose answer hangs on every number in them."""
ASKS_WHEN = re.compile(r"\b(?:day|weekday|date|month|week|hour|time|due)\b", re.IGNORECASE)
"""Another kind of question for which they count."""
ABBREVIATION = re.compile(r"\b[A-Z]{2,4}\b")
WORD = re.compile(r"\w+")
FEW_WORDS, MATTERS = 8, 0.6
"""Up to so many words nothing is beside the question; and how rare a word is that matters."""
IN_PASSING = {0.5, 1.0}
"""Numbers that come and go with the wording: "one of them", "half past"."""


async def unfaithful_flow(question: str, rewrite: str, edited: str = "") -> str:
    """The flow that tells why a rewrite is not used; "" where it asks the same as the question.

    What is badly typed is like nothing: a rewrite that drifts from it may ask what the question
    asks after its edits. What is compared is what the score's drift compares, by the same
    embeddings: those are computed once.
    """
    why = await _why_unfaithful_flow(question, rewrite)
    if why.startswith(DRIFTED) and edited not in ("", question):
        return why if await _why_unfaithful_flow(edited, rewrite) else ""
    return why


async def _why_unfaithful_flow(question: str, rewrite: str) -> str:
    detector = shipped_detector()
    texts = detector.texts_of(question, rewrite)
    known = dict(zip(texts, await Encode(texts), strict=True)) if texts else {}

    def encode(wanted: Sequence[str]) -> Vectors:
        return np.stack([known[text] for text in wanted])

    drift = detector.find([question], [rewrite], encode)[0]
    if drift.value > CALIBRATED:
        return f"{DRIFTED}{drift.value:.2f}: {drift.why}"
    compared = detector.compared(question, rewrite)[1]
    return _lost(question, rewrite, compared) if isinstance(compared, Compared) else ""


def _lost(question: str, rewrite: str, compared: Compared) -> str:
    """What must not be left out, though a side story may have held it; "" where nothing is.

    `python -m benchmarks.faithfulness` tells what is refused for it, `by rules`.
    """
    numbers = [number for number in compared.lost_numbers if number not in IN_PASSING]
    if numbers and (compared.kinds[0] in COUNTING or ASKS_WHEN.search(rewrite)):
        return f"left out: {', '.join(f'{number:g}' for number in numbers)}"
    letters = {short.casefold() for short in ABBREVIATION.findall(question)}
    if question != question.upper() and (short := letters & set(compared.lost)):
        return f"left out: {', '.join(sorted(short))}"
    few = len(WORD.findall(question)) <= FEW_WORDS
    if few and compared.numbers.get("lost 1", 0.0) >= MATTERS:
        return f"left out: {', '.join(compared.lost)}"
    if compared.lost and compared.numbers.get("lost names"):
        return f"a name left out: one of {', '.join(compared.lost)}"
    if compared.numbers.get("negation lost") and compared.numbers.get("no longer negated"):
        return "a negation left out"
    return ""
