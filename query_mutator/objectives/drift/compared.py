"""A question and its rewrite as numbers: what was put in, left out, exchanged and turned round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from query_mutator.objectives.drift.asked import STANDARD
from query_mutator.objectives.drift.changes import (
    compare_kinds,
    compare_negations,
    compare_numbers,
    compare_order,
)
from query_mutator.objectives.drift.meanings import Meanings
from query_mutator.objectives.drift.pair import Compared, Pair
from query_mutator.objectives.drift.wording import (
    SAME_WORD,
    Word,
    function_words,
    kind_groups,
    likeness,
    negations,
    opposites,
    rarity,
    resemblance,
    spelt_alike,
    stem,
    typed_for,
)

TOLD_BY_NAME = 0.25
"""From which deficit on a word is worth telling."""
NEAR_END = 14
PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "mis")
PUT_IN, LEFT_OUT = "+", "-"
"""How the names of numbers begin that stand for a single word."""


@dataclass(frozen=True)
class _Matched:
    """A word, and how surely the other text has it."""

    word: Word
    best: float

    @property
    def rarity(self) -> float:
        return rarity(self.word.text)

    @property
    def deficit(self) -> float:
        """How much meaning has no counterpart."""
        return 0.0 if self.best >= SAME_WORD else self.rarity * (1.0 - self.best / SAME_WORD)


def compare(pair: Pair, meanings: Meanings) -> Compared:
    """Everything but what embeddings of the whole texts say."""
    found = Compared()
    new = _put_in(pair, meanings, found)
    lost = _left_out(pair, meanings, found)
    found.numbers["new × lost"] = min(found.numbers["new 1"], found.numbers["lost 1"])
    compare_numbers(pair, found)
    compare_negations(pair, found)
    _compare_lists(pair, new, lost, found)
    _compare_places(pair, meanings, found)
    _compare_neighbours(pair, meanings, found)
    compare_kinds(pair, meanings, found)
    compare_order(pair, found)
    functions = (set(pair.told_texts) - set(pair.asked_texts)) & function_words()
    words = {stem(text) for text in new} | functions
    found.numbers |= {f"{PUT_IN}{text}": 1.0 for text in words}
    if not pair.long:
        found.numbers |= {f"{LEFT_OUT}{stem(text)}": 1.0 for text in lost}
    return found


def _put_in(pair: Pair, meanings: Meanings, found: Compared) -> set[str]:
    """What the rewrite has that the question has not; gives its words."""
    asked = [
        text for text in pair.asked_texts if text not in function_words() or text in negations()
    ]
    unspaced = pair.question.casefold().replace(" ", "")
    matched = []
    corrected = pair.corrected
    for word in _carrying(pair.told):
        if word.text in pair.asked_texts:
            best = 1.0
        else:
            others = [text for text in asked if not _is_nearer(text, corrected, word.text)]
            best = _best(word.text, others, meanings, pair.loose)
            # Two words typed as one, or one as two.
            if best < SAME_WORD and len(word.text) > 5 and word.text in unspaced:
                best = 0.9
        matched.append(_Matched(word, best))
    first, second, third = _largest(matched, 3)
    total = sum(one.deficit for one in matched)
    missing = [one for one in matched if one.best < SAME_WORD]
    names = float(min(2, sum(one.word.capital for one in missing)))
    core = {word.text for word in pair.core}
    present = [one for one in matched if one.best >= SAME_WORD]
    inside = [
        one for one in present if _best(one.word.text, core, meanings, pair.loose) >= SAME_WORD
    ]
    found.aside = [one.word.text for one in present if one not in inside]
    whole = sum(one.rarity for one in matched) or 1.0
    found.numbers |= {
        "misspelt": float(pair.loose),
        "long": float(pair.long),
        "length": min(len(pair.asked), 60) / 60,
        "new 1": first,
        "new 2": second,
        "new 3": third,
        "new sum": min(3.0, total),
        "new share": total / whole,
        "new count": min(4, sum(one.best < 0.5 for one in matched)) / 4,
        "far count": min(4, sum(one.best < 0.3 for one in matched)) / 4,
        "new short": min(3.0, total) * (not pair.long),
        "new names": names,
        "new names short": names * (not pair.long),
        "overlap in core": sum(one.rarity for one in inside) / whole,
    }
    found.new = _telling(matched)
    return {one.word.text for one in missing}


def _left_out(pair: Pair, meanings: Meanings, found: Compared) -> set[str]:
    """What stands where the question asks and the rewrite has not; gives its words."""
    told = [text for text in pair.told_texts if text not in function_words()]
    matched = [
        _Matched(
            word,
            1.0 if word.text in pair.told_texts else _best(word.text, told, meanings, pair.loose),
        )
        for word in _carrying(pair.core)
    ]
    first, second = _largest(matched, 2)
    total = sum(one.deficit for one in matched)
    share = total / (sum(one.rarity for one in matched) or 1.0)
    missing = [one for one in matched if one.best < SAME_WORD]
    found.numbers |= {
        "lost 1": first,
        "lost 2": second,
        "lost share": share,
        "lost share short": share * (len(pair.core) <= 12),
        "lost 1 short": first * (len(pair.core) <= 10),
        "lost sum": min(4.0, total) / 2,
        "lost names": float(min(2, sum(one.word.capital for one in missing))),
    }
    found.lost = _telling(matched)
    return {one.word.text for one in missing}


def _compare_lists(pair: Pair, new: set[str], lost: set[str], found: Compared) -> None:
    """Words exchanged for their opposites, or for others of their kind."""
    asked, told = _with_stems(pair.asked_texts), _with_stems(pair.told_texts)
    found.opposites = [
        (other, text)
        for text in pair.told_texts
        for other in sorted(opposites().get(text, ()))
        if other in asked and text not in asked and other not in told
    ]
    near = {word.text for word in pair.asked[-NEAR_END:]}
    kinds = kind_groups()
    none: frozenset[int] = frozenset()
    exchanged = [
        (old, text)
        for text in sorted(new)
        for old in sorted(lost)
        if kinds.get(old, none) & kinds.get(text, none) and spelt_alike(old, text) < SAME_WORD
    ]
    found.exchanged += exchanged
    found.numbers |= {
        "opposite": float(bool(found.opposites)),
        "opposite, core": float(any(old in near or not pair.long for old, _ in found.opposites)),
        "opposite by prefix": float(_prefixed(asked, told) or _prefixed(told, asked)),
        "other of its kind": float(bool(exchanged)),
        "of a kind asked": float(
            any(kinds.get(old, none) & kinds.get(text, none) for text in new for old in asked)
        ),
    }


def _compare_neighbours(pair: Pair, meanings: Meanings, found: Compared) -> None:
    """Words that stand side by side and were far apart, where another stood beside the first."""
    asked = [stem(word.text) for word in pair.asked if word.carries]
    told = [stem(word.text) for word in pair.told if word.carries]
    where: dict[str, list[int]] = {}
    for place, text in enumerate(asked):
        where.setdefault(text, []).append(place)
    farthest, moved = 0, False
    for first, second in _twos(told):
        if first == second or first not in where or second not in where:
            continue
        apart = min(abs(a - b) for a in where[first] for b in where[second])
        farthest = max(farthest, apart)
        after = {asked[place + 1] for place in where[first] if place + 1 < len(asked)}
        moved = moved or (apart > 1 and bool(after) and not after & set(told))
    opening = _opening(pair)
    told_texts = [text for text in pair.told_texts if text not in function_words()]
    lost = [float(_best(text, told_texts, meanings, pair.loose) < SAME_WORD) for text in opening]
    weights = [rarity(text) for text in opening]
    found.opening_lost = [text for text, gone in zip(opening, lost, strict=True) if gone]
    found.numbers |= {
        "from aside": (1.0 - found.numbers["overlap in core"]) * found.numbers["lost share"],
        "from aside, opening lost": float(
            found.numbers["overlap in core"] < 1 and found.numbers["new 1"] == 0 and any(lost)
        ),
        "apart": min(6, farthest) / 6,
        "another neighbour": float(moved),
        "another neighbour × copied": moved * found.numbers["copied"],
        "opening lost": max((a * b for a, b in zip(lost, weights, strict=True)), default=0.0),
        "opening lost share": sum(a * b for a, b in zip(lost, weights, strict=True))
        / (sum(weights) or 1.0),
    }


def _opening(pair: Pair) -> list[str]:
    """The first words that carry meaning after the last question word of the asking part."""
    last = max((place for place, word in enumerate(pair.core) if word.text in STANDARD), default=-1)
    return [word.text for word in pair.core[last + 1 :] if word.carries][:3]


def _compare_places(pair: Pair, meanings: Meanings, found: Compared) -> None:
    """Words between the same neighbours as others; how much is copied word for word."""
    asked, told = [word.text for word in pair.asked], [word.text for word in pair.told]
    slots: dict[tuple[str, str], list[str]] = {}
    for before, word, after in _threes(asked):
        slots.setdefault((before, after), []).append(word)
    content = [text for text in pair.asked_texts if text not in function_words()]
    exchanged, small = [], False
    for before, word, after in _threes(told):
        there = slots.get((before, after), [])
        if not there or word in there:
            continue
        if any(_may_be(old, word, pair.loose) for old in there):
            continue
        if any(spelt_alike(word, text) >= SAME_WORD for text in content):
            continue
        if word in function_words() and there[0] in function_words():
            small = True
        elif likeness(there[0], word, meanings, pair.loose) < 0.8:
            exchanged.append((there[0], word))
    found.exchanged = exchanged + found.exchanged
    pairs, told_pairs = set(_twos(asked)), set(_twos(told))
    copied = len(pairs & told_pairs) / max(1, len(told_pairs))
    n = found.numbers
    n |= {
        "in the place of another": float(bool(exchanged)),
        "small word in the place": float(small),
        "copied": copied,
        "copied × new": copied * n["new 1"],
        "copied × place": copied * bool(exchanged),
        "put in copy": float(copied > 0.6 and len(told) > len(asked)) * n["new 1"],
        "left out of copy": copied * n["lost 1"],
    }


def _carrying(words: Sequence[Word]) -> list[Word]:
    """The first of each word that carries meaning."""
    first: dict[str, Word] = {}
    for word in words:
        if word.carries:
            first.setdefault(word.text, word)
    return list(first.values())


def _best(text: str, others: Iterable[str], meanings: Meanings, loose: bool) -> float:
    return max((likeness(text, other, meanings, loose) for other in others), default=0.0)


def _largest(matched: Sequence[_Matched], count: int) -> list[float]:
    deficits = sorted((one.deficit for one in matched), reverse=True)
    return (deficits + [0.0] * count)[:count]


def _telling(matched: Sequence[_Matched]) -> list[str]:
    ordered = sorted(matched, key=lambda one: -one.deficit)
    return [one.word.text for one in ordered if one.deficit > TOLD_BY_NAME]


def _prefixed(words: set[str], others: set[str]) -> bool:
    """Whether a word is another's opposite: `unhealthy`."""
    return any(
        prefix + word in others and prefix + word not in words
        for word in words - others
        if len(word) > 3
        for prefix in PREFIXES
    )


def _is_nearer(typed: str, corrected: Mapping[str, str], word: str) -> bool:
    """Whether a misspelt word is nearer to what it was taken for than to another word."""
    taken = corrected.get(typed)
    return bool(taken) and resemblance(typed, str(taken)) > resemblance(typed, word) + 0.02


def _may_be(old: str, word: str, loose: bool) -> bool:
    return spelt_alike(word, old) >= SAME_WORD or (loose and typed_for(old, word, 0.5))


def _with_stems(texts: Sequence[str]) -> set[str]:
    return set(texts) | {stem(text) for text in texts}


def _threes(words: Sequence[str]) -> list[tuple[str, str, str]]:
    framed = ["", *words, ""]
    return list(zip(framed, framed[1:], framed[2:], strict=False))


def _twos(words: Sequence[str]) -> list[tuple[str, str]]:
    return list(pairwise(words))
