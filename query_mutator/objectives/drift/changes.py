"""Changes of what is asked: of numbers, negations, the kind of answer, and the order of things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from query_mutator.objectives.drift.asked import (
    HARD,
    PEOPLE,
    group_of,
    kind_asked,
    kinds_asked,
    nouns_asked_for,
)
from query_mutator.objectives.drift.meanings import Meanings
from query_mutator.objectives.drift.numerals import RANKS, listed, number_of, numbers_in
from query_mutator.objectives.drift.pair import Compared, Pair
from query_mutator.objectives.drift.wording import (
    SAME_WORD,
    Word,
    negations,
    spelt_alike,
    stem,
    typed_for,
)

SMALL = frozenset((0.5, 1.0, 2.0))
"""Numbers that come and go with the wording: "one of them", "both", "half past"."""
TWO_WORDS = frozenset(listed("both pair two 2 to too other twice each double couple second 2nd"))
HINTS = {
    "when": frozenset(listed("when year years yr date month day time century")),
    "many": frozenset(listed("many much number count total percent degrees point sum half digit")),
    "cost": frozenset(listed("cost costs price pay cheap expensive")),
    "how": frozenset(listed("how get gets trick way correct spell difference")),
    "made of": frozenset(listed("made material consist ingredient")),
    "long": frozenset(listed("long minutes hours days time years")),
    "size": frozenset(listed("much large big limit height high deep far size temperature")),
    "age": frozenset(listed("old age")),
}
"""Words by which a kind of answer is asked for without its question word."""
NEAR_HEADS = 0.5
_BETWEEN = frozenset(
    listed(
        "minus divided into from before after than to over under inside by of in on off out behind "
        "with for above below until"
    )
)
_LOOSE_BETWEEN = frozenset(("of", "in", "for", "with", "by"))
_DIRECTIONS = tuple(
    frozenset(pair.split())
    for pair in (
        "before after", "into from", "from to", "above below", "over under", "inside off",
        "with off", "into out",
    )
)  # fmt: skip
_WHAT_DOES = re.compile(
    r"\W*\b(?:what|wat) (?:do|does|did|dose) (?!(?:you|we|people|they|one|u|i) (?:call|say)\b)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“]([^\"”]{1,80})[\"”]")
_WINDOW = 5
_CENTURIES = 1900.0


def compare_numbers(pair: Pair, found: Compared) -> None:
    """Numbers put in, left out, or fewer than there were."""
    asked = numbers_in(pair.spelt)
    have, told = {*numbers_in(pair.question), *asked}, numbers_in(pair.rewrite)
    asked_words, told_words = set(pair.asked_texts), set(pair.told_texts)
    new = [number for number in dict.fromkeys(told) if not _is_in(number, have)]
    lost = [number for number in dict.fromkeys(asked) if not _is_in(number, told)]
    if "4" in asked_words and "for" in told_words - asked_words:
        lost = [number for number in lost if number != 4.0]
    large_lost = any(number not in SMALL for number in lost)
    large_told = [number for number in told if number not in SMALL]
    short = not pair.long
    found.new_numbers, found.lost_numbers = new, lost
    found.numbers |= {
        "new number": float(any(number not in SMALL for number in new)),
        "new small number": float(any(number in SMALL for number in new)),
        "new two": float(2.0 in new and not TWO_WORDS & asked_words),
        "new half": float(0.5 in new),
        "lost number": float(large_lost),
        "lost number short": float(large_lost and short),
        "lost small number": float(short and any(number in SMALL for number in lost)),
        "new rank": float(
            any(RANKS[word] not in have for word in RANKS.keys() & told_words - asked_words)
        ),
        "lost rank": float(short and bool(RANKS.keys() & asked_words - told_words)),
        "another quoted": float(_quotes_another(pair)),
        "fewer numbers": float(bool(large_told) and large_lost),
        "number exchanged": float(bool(new) and bool(lost)),
        "count of numbers": float(
            short and len(large_told) < sum(number not in SMALL for number in asked)
        ),
    }


def _quotes_another(pair: Pair) -> bool:
    """Whether something is quoted that the question does not contain."""
    have = " ".join(pair.asked_texts), pair.question.casefold(), pair.spelt.casefold()
    quoted = [text.casefold().strip(" .,?!") for text in _QUOTED.findall(pair.rewrite)]
    return any(text and not any(text in known for known in have) for text in quoted)


def _is_in(number: float, numbers: Iterable[float]) -> bool:
    """Whether a number is there; the 80s are the 1980s."""
    return any(
        number == other or (abs(number - other) == _CENTURIES and min(number, other) < 100)
        for other in numbers
    )


def compare_negations(pair: Pair, found: Compared) -> None:
    """Negations put in, and left out of what is asked."""
    before = negations() & set(pair.asked_texts)
    after = negations() & set(pair.told_texts)
    in_core = negations() & {word.text for word in pair.core}
    found.numbers |= {
        "negation put in": float(bool(after) and not before),
        "negation lost": float(bool(before) and not after and bool(in_core)),
        "negation of another": float(bool(after) and bool(before)),
        "negated": float(bool(_negated(pair.told) & _plain(pair.asked))),
        "no longer negated": float(bool(_negated(pair.core) & _plain(pair.told))),
    }


def _negated(words: Sequence[Word]) -> set[str]:
    """What stands right after a negation."""
    return {
        stem(next_word.text)
        for place, word in enumerate(words)
        if word.text in negations()
        for next_word in [w for w in words[place + 1 : place + _WINDOW] if w.carries][:1]
    }


def _plain(words: Sequence[Word]) -> set[str]:
    """What is said without a negation shortly before it."""
    return {
        stem(word.text)
        for place, word in enumerate(words)
        if word.carries
        and not negations() & {w.text for w in words[max(0, place - _WINDOW) : place]}
    } - _negated(words)


def compare_kinds(pair: Pair, meanings: Meanings, found: Compared) -> None:
    """The kind of answer asked for, and the thing it is asked of."""
    main, told = found.kinds = (kind_asked(pair.spelt), kind_asked(pair.rewrite))
    asked_kinds = kinds_asked(pair.spelt)
    first, second = group_of(main), group_of(told)
    asked = {first, *map(group_of, asked_kinds)}
    hard = second in HARD and second not in asked and not _hinted(second, pair)
    heads = nouns_asked_for(pair.spelt)
    found.numbers |= {
        f"{first} → {second}": 1.0,
        f"→ {second}": 1.0,
        "another kind": float(told != main),
        "another group": float(first != second),
        "group not asked": float(second not in asked),
        "hard group not asked": float(hard and first != "none"),
        "hard group, telegram": float(hard and first == "none"),
        "asked aside": float(second in asked and second != first),
        "from hard": float(first in HARD and second not in HARD),
        "another kind of thing": float(first == second and told != main),
        "who not asked": float(
            told == "who"
            and main != "none"
            and "who" not in asked_kinds
            and not PEOPLE & set(heads)
            and bool({"who", "whom", "whose"} & set(pair.told_texts))
        ),
        "who asked, what told": float(
            main == "who" and told in ("what", "name") and not PEOPLE & set(pair.told_texts)
        ),
        "what does not asked": float(
            bool(_WHAT_DOES.match(pair.rewrite)) and not _WHAT_DOES.search(pair.spelt)
        ),
        "means not asked": float(told == "means" and not {"means", "letters"} & set(asked_kinds)),
        "place not asked": float(told == "where" and main != "none" and "where" not in asked_kinds),
        "ends as a statement": float(
            pair.rewrite.strip().endswith(".") and told not in ("name", "many")
        ),
    }
    _compare_heads(pair, heads, meanings, found)


def _hinted(kind: str, pair: Pair) -> bool:
    """Whether a question holds words by which a kind of answer can be asked for."""
    hints = HINTS.get(kind)
    texts = set(pair.asked_texts)
    if kind == "many" and any(number_of(text) is not None for text in texts):
        return True
    return bool(hints and hints & texts)


def _compare_heads(pair: Pair, heads: Sequence[str], meanings: Meanings, found: Compared) -> None:
    """ "Which king …" where "which palace" was asked, and a king was told of."""
    told = nouns_asked_for(pair.rewrite)
    alike = any(spelt_alike(a, b) >= SAME_WORD or typed_for(a, b) for a in heads for b in told)
    nearest = max((meanings.cosine(a, b) for a in heads for b in told), default=1.0)
    others = {word.text for word in pair.asked} - set(heads)
    other = bool(heads) and bool(told) and not alike
    aside = other and any(spelt_alike(told[-1], text) >= 0.9 for text in others)
    known = bool(told) and any(spelt_alike(told[-1], w.text) >= SAME_WORD for w in pair.asked)
    found.numbers |= {
        "other heads": float(other),
        "far heads": float(other and nearest < NEAR_HEADS),
        "head from aside": float(aside),
        "head from nowhere": float(bool(told) and not alike and not aside),
        "asks for another noun": float(bool(told) and not known),
    }


def compare_order(pair: Pair, found: Compared) -> None:
    """Whether two things changed places, or stand on the other side of what joins them."""
    asked, told = _sides(pair.asked), _sides(pair.told)
    anywhere = {sides for found_sides in asked.values() for sides in found_sides}
    stems = {stem(word.text) for word in pair.asked} & {stem(word.text) for word in pair.told}
    facing, now_facing = _facing(pair.asked, stems), _facing(pair.told, stems)
    found.numbers |= {
        "turned round": float(
            any(
                (right, left) in asked.get(joint, ()) and (left, right) not in asked[joint]
                for joint, sides in told.items()
                for left, right in sides
            )
        ),
        "turned round by another": float(
            any(
                (right, left) in anywhere
                for joint, sides in told.items()
                for left, right in sides
                if joint not in _LOOSE_BETWEEN
            )
        ),
        "other side": float(
            any(
                (text, now) in now_facing and (text, joint) not in now_facing
                for text, joint in facing
                for pair_of in _DIRECTIONS
                if joint in pair_of
                for now in pair_of - {joint}
            )
        ),
    }


def _sides(words: Sequence[Word]) -> dict[str, list[tuple[str, str]]]:
    """Pairs of what stands before and after each word that joins two things."""
    found: dict[str, list[tuple[str, str]]] = {}
    for place, word in enumerate(words):
        if word.text in _BETWEEN:
            before = [w.text for w in words[max(0, place - _WINDOW) : place] if w.carries]
            after = [w.text for w in words[place + 1 : place + _WINDOW] if w.carries]
            if word.text in _LOOSE_BETWEEN:
                before, after = before[-1:], after[:1]
            found.setdefault(word.text, []).extend(
                (stem(left), stem(right)) for left in before for right in after
            )
    return found


def _facing(words: Sequence[Word], stems: set[str]) -> set[tuple[str, str]]:
    """Things, each with the words that stand shortly before it and say on which side it is."""
    return {
        (stem(other.text), word.text)
        for place, word in enumerate(words)
        if word.text in _BETWEEN
        for other in words[place + 1 : place + _WINDOW]
        if other.carries and stem(other.text) in stems
    }
