"""A question as words: which carry its meaning, how rare they are, and which are the same word."""

from __future__ import annotations

import difflib
import functools
import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from query_mutator.english.spelling import WORDS_COUNTED, correct_spelling, sound, word_counts
from query_mutator.objectives.drift.meanings import Meanings
from query_mutator.objectives.drift.numerals import NUMBERS, listed, number_of

TABLES_FILE = Path(__file__).with_name("words.toml")
MOST_CHARACTERS = 4000
MOST_WORDS = 300
LONG = 22
"""Words of a question that tells a story besides."""
SAME_WORD = 0.7
"""How alike two words must be to be taken for the same."""
COMMON = 1_000_000
"""Times a word was counted that is no misspelling."""
TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[+=*/÷×%$€]|-(?=\d)|(?<=\d )-")
_ENDINGS = sorted(
    listed(
        "ingly ings ing edly ed ies es s ly er ers or ors ful ish y e ness ment ion ions ian al an "
        "ous"
    ),
    key=lambda ending: (-len(ending), ending),
)


@dataclass(frozen=True)
class Word:
    """A word of a question, in small letters."""

    text: str
    start: int
    end: int
    capital: bool
    """Written with a capital though it begins no sentence."""

    @property
    def carries(self) -> bool:
        """Whether it says what is asked about."""
        return self.text not in function_words() and (len(self.text) > 1 or self.text.isdigit())


@functools.cache
def tables() -> dict[str, dict[str, str]]:
    """Words that are written out, irregular forms, and so on."""
    return tomllib.loads(TABLES_FILE.read_text(encoding="utf-8"))


@functools.cache
def function_words() -> frozenset[str]:
    """Words that join others, and those by which anything is asked."""
    return frozenset(str(tables()["sets"]["function"]).split())


@functools.cache
def negations() -> frozenset[str]:
    """Words that turn round what is asked."""
    return frozenset(str(tables()["sets"]["negations"]).split())


@functools.lru_cache(maxsize=8192)
def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text, with what is typed in short written out."""
    found: list[Word] = []
    shouting = text.upper() == text
    short_for = tables()["short"]
    for match in TOKEN.finditer(text[:MOST_CHARACTERS]):
        typed = match[0].replace("’", "'")
        lower = typed.casefold().removesuffix("'s")
        before = text[: match.start()].rstrip()[-1:]
        begins = not before or before in ".!?:\"'“‘"
        capital = typed[0].isupper() and not begins and not shouting and lower != "i"
        if lower not in NUMBERS:
            lower = short_for.get(lower, lower)
        found += [Word(part, match.start(), match.end(), capital) for part in lower.split("-")]
    return tuple(found[:MOST_WORDS])


@functools.lru_cache(maxsize=8192)
def spelt(text: str) -> str:
    """The text with its spelling corrected; what is shouted counts as written in small letters."""
    shown = text[:MOST_CHARACTERS]
    return correct_spelling(shown.casefold() if shown.upper() == shown else shown)


@functools.lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """What the forms of a word share.

    >>> stem("written") == stem("writes"), stem("polar") == stem("pole")
    (True, True)
    """
    word = tables()["forms"].get(word, word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] + "y" if len(word) > 3 and word.endswith("i") else word


@functools.lru_cache(maxsize=16384)
def rarity(word: str) -> float:
    """How much a word says: 0.1 for the commonest, 1 for what is in no dictionary."""
    seen = word_counts().get(word, 0) + 20_000
    return min(1.0, max(0.1, math.log(WORDS_COUNTED / seen) / 17.0))


@functools.lru_cache(maxsize=16384)
def is_common(word: str) -> bool:
    """Whether a word is no misspelling."""
    return word_counts().get(word, 0) > COMMON


@functools.lru_cache(maxsize=65536)
def spelt_alike(left: str, right: str) -> float:
    """How surely two words are the same one, by their letters and their sound: 0 to 1."""
    if left == right or stem(left) == stem(right):
        return 1.0
    shortest = min(len(left), len(right))
    if left.isdigit() or right.isdigit() or shortest < 3:
        return 0.0
    shared = len(_shared_start(left, right))
    if shared >= 5 and shared >= 0.65 * max(len(left), len(right)):
        return 0.85
    if is_common(left) and is_common(right):
        return 0.0
    if sound(left) == sound(right) or sorted(left) == sorted(right):
        return 0.95
    distance = _edits(left, right)
    for most, length, alike in ((1, 4, 0.9), (2, 6, 0.8), (3, 9, 0.7)):
        if distance <= most and shortest >= length:
            return alike
    return 0.0


@functools.lru_cache(maxsize=4096)
def is_misspelt(text: str) -> bool:
    """Whether so many words of a text are in no dictionary that others may be wrong as well."""
    words = [word.text for word in words_of(text) if word.text.isalpha() and not word.capital]
    wrong = sum(not is_common(word) for word in words)
    return wrong >= 2 and wrong >= 0.12 * len(words)


@functools.lru_cache(maxsize=65536)
def typed_for(typed: str, meant: str, least: float = 0.6) -> bool:
    """Whether a word may be a misspelling of another, in a text that has many.

    >>> typed_for("flehs", "flesh"), typed_for("orkestra", "orchestra"), typed_for("cow", "horse")
    (True, True, False)
    """
    if min(len(typed), len(meant)) < 2 or typed.isdigit() or meant.isdigit():
        return False
    if sound(typed) == sound(meant) and len(sound(typed)) > 1:
        return True
    both_common = is_common(typed) and is_common(meant)
    return resemblance(typed, meant) >= (least + 0.15 if both_common else least)


@functools.lru_cache(maxsize=65536)
def resemblance(left: str, right: str) -> float:
    """How much of two words is the same letters in the same order."""
    return difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()


@functools.cache
def alike_groups() -> dict[str, frozenset[int]]:
    """The groups of words with the same meaning that a word is in."""
    return _numbered("alike", stemmed=True)


@functools.cache
def kind_groups() -> dict[str, frozenset[int]]:
    """The groups of words of one kind, no two of them the same, that a word is in."""
    return _numbered("kinds", stemmed=False)


@functools.cache
def opposites() -> dict[str, frozenset[str]]:
    """The opposites of a word."""
    found: dict[str, set[str]] = {}
    for pair in kinds_file()["opposites"]:
        left, right = pair
        if left and right and " " not in left + right:
            found.setdefault(left, set()).add(right)
            found.setdefault(right, set()).add(left)
    return {word: frozenset(others) for word, others in found.items()}


@functools.cache
def kinds_file() -> dict[str, list[list[str]]]:
    """Words of one kind, opposites, and words that are alike."""
    text = TABLES_FILE.with_name("kinds.toml").read_text(encoding="utf-8")
    return {name: [line.split(", ") for line in rows] for name, rows in tomllib.loads(text).items()}


def likeness(left: str, right: str, meanings: Meanings, loose: bool = False) -> float:
    """How surely two words say the same: by letters, by number, by a list, or by meaning."""
    if left == right:
        return 1.0
    alike = spelt_alike(left, right)
    if alike >= SAME_WORD:
        return alike
    if loose and typed_for(left, right):
        return 0.8
    one, other = number_of(left), number_of(right)
    if one is not None or other is not None:
        return float(one == other)
    if right in opposites().get(left, ()):
        return 0.0
    if _alike(left) & _alike(right):
        return 0.9
    return min(0.75, max(0.0, meanings.cosine(left, right)))


def _alike(word: str) -> frozenset[int]:
    groups = alike_groups()
    return groups.get(word) or groups.get(stem(word)) or frozenset()


def _numbered(table: str, *, stemmed: bool) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, words in enumerate(kinds_file()[table]):
        for word in words:
            for form in {word.casefold(), stem(word.casefold())} if stemmed else {word.casefold()}:
                found.setdefault(form, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


def _shared_start(left: str, right: str) -> str:
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return left[:place]
    return min(left, right, key=len)


def _edits(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for place, letter in enumerate(left, 1):
        before, row[0] = row[0], place
        for other, its_letter in enumerate(right, 1):
            cost = min(row[other] + 1, row[other - 1] + 1, before + (letter != its_letter))
            before, row[other] = row[other], cost
    return row[-1]
