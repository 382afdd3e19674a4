"""Slips of the fingers, and words written as they sound."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from query_mutator.data.messing.phrases import lists, words
from query_mutator.english.words import common_words

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
PLAIN = re.compile(r"[a-z]+")
SWAP, DROP, DOUBLE, NEIGHBOUR, SINGLE = "swap", "drop", "double", "neighbour", "single"
SLIPS = (SWAP,) * 13 + (DROP,) * 4 + (SINGLE,) * 3 + (NEIGHBOUR,) + (DOUBLE,)
"""As often as in twins by hand."""
OF_SHORT, OF_LONG, OF_LONG_BESIDE_SOUNDS, OF_SPACES, AT_THE_FIRST = 0.5, 0.93, 0.5, 0.12, 0.12
"""Shares of words of three letters, of longer ones, of spaces and of first letters that are hit."""
FROM_THE_LIST = 0.93
TRIES = 12


@dataclass(frozen=True)
class Spared:
    """Words of a question that its meaning hangs on, in lower case."""

    names: frozenset[str] = frozenset()
    """They get one slip at most."""
    exact: frozenset[str] = frozenset()
    """They get none: what is asked about as a word, and abbreviations."""

    @property
    def all(self) -> frozenset[str]:
        """The names and the others."""
        return self.names | self.exact | words("kept")


def mistype(text: str, spared: Spared, random: Random, by_ear: float = 0.0) -> str:
    """The text with the slips of fast fingers; names get at most one, what is spared none.

    In a share `by_ear` of words, common ones are spelt as many people do, others as they sound.
    """
    habits: dict[str, str] = lists("sounds")["habits"]
    slipped: set[str] = set()

    def put(match: re.Match[str]) -> str:
        word = match[0]
        is_name = word.lower() in spared.names
        if _is_kept(match, text, spared):
            return word
        if by_ear and word in habits:
            return random.choice(habits[word].split())
        if len(word) < 3 or (is_name and (word in slipped or len(word) < 5)):
            return word
        if not is_name and random.random() < by_ear:
            return _by_rules(word, random.choice((0, 0, 1)), random)
        of_long = OF_LONG_BESIDE_SOUNDS if by_ear else OF_LONG
        if random.random() > (OF_SHORT if len(word) == 3 else of_long):
            return word
        if is_name:
            slipped.add(word)
        return slip(word, random)

    return _misplace_spaces(WORD.sub(put, text), set(text.split()) - spared.all, random)


def slip(word: str, random: Random) -> str:
    """The word with one slip that does not make another word of it, or the word itself.

    >>> slip("planet", Random(1)) != "planet"
    True
    """
    for _ in range(TRIES):
        made = _slipped(word, random.choice(SLIPS), random)
        if made != word and made.isalpha() and made.lower() not in common_words():
            return made
    return word


def spell_by_ear(text: str, spared: Spared, random: Random) -> str:
    """The text with most words as they sound; names change in one place at most."""
    written: dict[str, str] = lists("sounds")["words"]

    def put(match: re.Match[str]) -> str:
        word = match[0]
        if _is_kept(match, text, spared):
            return word
        if word.lower() in written and random.random() < FROM_THE_LIST:
            return random.choice(written[word.lower()].split())
        if word.lower() in spared.names:
            return _by_rules(word, 1, random) if len(word) > 4 else word
        return _by_rules(word, random.choice((1, 2, 2, 3)), random)

    return WORD.sub(put, text)


def _slipped(word: str, kind: str, random: Random) -> str:
    last = len(word) - 1
    at_first = random.random() < AT_THE_FIRST
    place = random.randrange(last) if at_first else random.randrange(1, max(2, last))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    if kind == SWAP and after:
        return before + after[0] + letter + after[1:]
    if kind == DROP and len(word) > 4:
        return before + after
    if kind == DOUBLE and len(word) > 3:
        return before + letter + letter + after
    if kind == NEIGHBOUR and len(word) > 4:
        return before + random.choice(lists("words")["neighbours"].get(letter, letter)) + after
    return re.sub(r"(.)\1", r"\1", word, count=1) if kind == SINGLE else word


def _by_rules(word: str, most: int, random: Random) -> str:
    """The word with so many of its letters written as they sound, none making it another word."""
    if len(word) < 3 or not word.isascii() or not most:
        return word
    rules: list[tuple[str, str]] = lists("sounds")["rules"]
    changed = 0
    for pattern, spelling in random.sample(rules, len(rules)):
        made = re.sub(pattern, spelling, word, count=1)
        if made != word and (made.lower() not in common_words() or len(made) < 3):
            word, changed = made, changed + 1
        if changed == most:
            break
    return word


def _is_kept(match: re.Match[str], text: str, spared: Spared) -> bool:
    """Whether a slip in the word could change what is asked."""
    word = match[0].lower()
    before, after = text[: match.start()][-1:], text[match.end() :][:1]
    in_a_number = before.isdigit() or after.isdigit() or before in ("-", ".", "@")
    return word in words("kept") or word in spared.exact or in_a_number


def _misplace_spaces(text: str, able: set[str], random: Random) -> str:
    """A space that comes a letter late or not at all, here and there, between able words."""
    typed = text.split(" ")
    for place in range(len(typed) - 1):
        one, other = typed[place], typed[place + 1]
        plain = PLAIN.fullmatch(one) and PLAIN.fullmatch(other)
        if not plain or random.random() > OF_SPACES or not {one, other} <= able:
            continue
        if random.random() < 0.5 and len(other) > 3 and len(one) < 5:
            typed[place], typed[place + 1] = one + other[0], other[1:]
        elif len(one) + len(other) < 9:
            typed[place], typed[place + 1] = "", one + other
    return " ".join(word for word in typed if word)
