"""Pairs to learn from: a question as it was asked, and as it should be asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from query_mutator.data import load_questions, load_twins
from query_mutator.data.messing import STYLES, messy_twin
from query_mutator.operators import shipped_operators
from query_mutator.operators.edits import apply_edits

TRAIN = "train"


@dataclass(frozen=True)
class Pair:
    """A question and how it should be asked."""

    question: str
    rewrite: str
    meaning: str = ""
    """What is asked: pairs that share it are on the same side of a split."""
    weight: float = 1.0
    category: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether it teaches to leave a clear question alone."""
        return self.question == self.rewrite


def shipped_pairs() -> list[Pair]:
    """The questions to train on with their twins, the messy wording first."""
    twins = load_twins()
    pairs = []
    for question in load_questions():
        twin = twins.get(question.id)
        if question.split == TRAIN and twin is not None:
            messy, clear = question.question, twin.twin
            if not twin.is_clear:
                messy, clear = clear, messy
            pairs.append(Pair(messy, clear, question.meaning, category=question.category))
    return pairs


def with_kept(pairs: Sequence[Pair], share: float, random: Random) -> list[Pair]:
    """The pairs, and so many of clear questions left alone that they are this share of all."""
    clear = {pair.rewrite: pair for pair in pairs if pair.rewrite.strip()}
    already = sum(pair.is_kept for pair in pairs)
    wanted = round(share / (1 - share) * (len(pairs) - already)) - already
    if wanted <= 0:
        return list(pairs)
    chosen = random.sample(sorted(clear), min(wanted, len(clear)))
    kept = [replace(clear[text], question=text) for text in chosen]
    return [*pairs, *kept]


def generated_pairs(pairs: Iterable[Pair], variants: float, seed: int) -> list[Pair]:
    """So many messy variants of each clear question, of as many styles as apply.

    Of 1.5 variants, half of the questions have two, and half of them one.
    """
    random = Random(seed)
    made = []
    for clear in {pair.rewrite: pair for pair in pairs}.values():
        wanted = int(variants + random.random())
        styles = random.sample(list(STYLES), len(STYLES))
        found = 0
        for style in styles:
            if found == wanted:
                break
            messy = messy_twin(clear.rewrite, style, random, clear.category)
            if messy is not None:
                found += 1
                made.append(replace(clear, question=messy))
    return made


def as_asked(pairs: Iterable[Pair], as_typed: float, random: Random) -> list[Pair]:
    """The pairs as a tuned model is asked them: after the operator's edits, but for a share."""
    edits = next(operator.edits for operator in shipped_operators() if operator.tuned)
    return [
        pair
        if random.random() < as_typed
        else replace(pair, question=apply_edits(pair.question, edits))
        for pair in pairs
    ]


def split_pairs(
    pairs: Sequence[Pair], share: float, random: Random
) -> tuple[list[Pair], list[Pair]]:
    """The pairs to train on and those to validate with.

    No meaning is on both sides, and no wording either: pairs that share one are kept together.
    """
    groups = _groups(pairs)
    names = sorted(set(groups))
    held = set(random.sample(names, round(share * len(names))))
    sides = list(zip(pairs, groups, strict=True))
    training = [pair for pair, group in sides if group not in held]
    return training, [pair for pair, group in sides if group in held]


def _groups(pairs: Iterable[Pair]) -> list[int]:
    """Of each pair: the place of the first one that it hangs together with, over any others."""
    leaders: list[int] = []
    first_with: dict[tuple[str, str], int] = {}

    def leader(place: int) -> int:
        while leaders[place] != place:
            leaders[place] = place = leaders[leaders[place]]
        return place

    for place, pair in enumerate(pairs):
        leaders.append(place)
        keys = {("text", _folded(pair.question)), ("text", _folded(pair.rewrite))}
        if pair.meaning:
            keys.add(("meaning", pair.meaning))
        for key in keys:
            one, other = leader(first_with.setdefault(key, place)), leader(place)
            leaders[max(one, other)] = min(one, other)
    return [leader(place) for place in range(len(leaders))]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
