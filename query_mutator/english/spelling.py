"""Corrects the spelling of single words, where one correction is likely."""

from __future__ import annotations

import functools
import importlib.resources
import math
import re
from typing import TYPE_CHECKING

from query_mutator.english.words import common_words

if TYPE_CHECKING:
    from symspellpy import SuggestItem, SymSpell

TYPED = {
    "wat": "what", "wut": "what", "wats": "what is", "whats": "what is", "wich": "which",
    "whos": "who is", "wheres": "where is", "hows": "how is", "thats": "that is",
    "theres": "there is", "u": "you", "ur": "your", "yor": "your",
    "im": "I am", "ive": "I have", "i": "I", "dont": "do not", "doesnt": "does not",
    "didnt": "did not", "cant": "cannot", "wont": "will not", "isnt": "is not",
    "youre": "you are", "theyre": "they are", "shes": "she is", "hes": "he is", "teh": "the",
    "coz": "because", "cuz": "because", "ppl": "people", "gonna": "going to",
    "wanna": "want to", "tho": "though", "thru": "through",
    "mins": "minutes", "secs": "seconds", "hrs": "hours", "pls": "please", "plz": "please",
}  # fmt: skip
"""What people type on purpose or so often that no dictionary is needed."""
SLANG = frozenset(("lol", "omg", "idk", "btw", "tbh", "faq", "sudo"))
LETTER_FOLLOWS = frozenset(("a", "an", "the", "letter", "vitamin"))
"""After these `u` is the letter."""
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
MOST_EDITS = 2
SHORTEST = 3
"""Shorter words are abbreviations more often than errors."""
LONG = 6
"""Letters of a word that is known by its others when two are wrong."""
MOST_UNKNOWN = 0.5
"""Share of words in no dictionary above which a text is in another language."""
WORDS_COUNTED = 1_024_908_267_229
COMMON, RARE = 3_000_000_000, 1_000_000
"""Counts of a very common word, and below which words of the dictionary are no corrections."""
COST_OF_EDIT, SAME_SOUND, SAME_LETTERS, SAME_START, NEIGHBOUR = 7.0, 8.0, 4.0, 3.0, 0.25
"""In units of log frequency: weights of the choice between corrections."""


@functools.lru_cache(maxsize=4096)
def correct_spelling(question: str) -> str:
    """The question with misspelt words corrected; names and numbers stay as they are.

    >>> correct_spelling("in wich sprot do poeple stand on skaits")
    'in which sport do people stand on skates'
    >>> correct_spelling("Aisha counts 11, 14, 17 in Mombasa")
    'Aisha counts 11, 14, 17 in Mombasa'
    """
    words = WORD.findall(question)
    unknown = [word for word in words if _may_be_wrong(word)]
    if len(unknown) > MOST_UNKNOWN * len(words):
        return question
    corrected: list[str] = []
    for place, word in enumerate(words):
        before = corrected[-1].split()[-1] if corrected else ""
        after = words[place + 1] if place + 1 < len(words) else ""
        corrected.append(_correct(word, before.casefold(), after.casefold()))
    replacements = iter(corrected)
    return WORD.sub(lambda _: next(replacements), question)


def _correct(word: str, before: str, after: str) -> str:
    lower = word.casefold()
    if lower in TYPED and not _abbreviates(word) and before not in LETTER_FOLLOWS:
        written = TYPED[lower]
        return written[0].upper() + written[1:] if word[0].isupper() else written
    if not _may_be_wrong(word):
        return word
    from symspellpy import Verbosity

    likely = [
        item
        for item in corrections().lookup(lower, Verbosity.ALL, MOST_EDITS)
        if _plausible(lower, item)
    ]
    if not likely:
        return word
    return max(likely, key=lambda item: _likelihood(item, lower, before, after)).term


def _abbreviates(word: str) -> bool:
    """A short word with a capital: `Ur`, `U`, `IM`."""
    return word[0].isupper() and len(word) <= SHORTEST


def _may_be_wrong(word: str) -> bool:
    plain = word.isascii() and word.isalpha() and word[0].islower() and len(word) >= SHORTEST
    return plain and word not in TYPED and not is_word(word.casefold())


def is_word(word: str) -> bool:
    """Whether a word in small letters is one that people write."""
    return word in word_counts() or word in common_words() or word in SLANG


def _plausible(word: str, item: SuggestItem) -> bool:
    """Has letters swapped, sounds alike, or is one slip away in a word known by all the rest.

    Short words that are in no dictionary are names and loans more often than errors.
    """
    if len(word) > SHORTEST and sorted(word) == sorted(item.term):
        return True
    if word[0] != item.term[0] or (item.distance > 1 and len(word) < LONG):
        return sound(word) == sound(item.term) and item.distance == 1 and len(word) >= LONG
    if len(item.term) < len(word) <= LONG and _single(item.term) != _single(word):
        return False
    return sound(word) == sound(item.term) or (item.distance == 1 and len(word) >= 5)


def _single(word: str) -> str:
    """The word without doubled letters."""
    return re.sub(r"(.)\1+", r"\1", word)


def _likelihood(item: SuggestItem, word: str, before: str, after: str) -> float:
    score = math.log(item.count / WORDS_COUNTED) - COST_OF_EDIT * item.distance
    score += SAME_SOUND * (sound(word) == sound(item.term)) + SAME_START * (word[0] == item.term[0])
    score += SAME_LETTERS * (sorted(word) == sorted(item.term))
    for pair in (f"{before} {item.term}", f"{item.term} {after}"):
        score += NEIGHBOUR * math.log1p(pair_counts().get(pair, 0))
    return score


def sound(word: str) -> str:
    """The consonants of a word as they sound: equal for words that are only spelt differently.

    >>> sound("skaits") == sound("skates"), sound("fone") == sound("phone")
    (True, True)
    """
    text = _single(re.sub(r"^[kg]n", "n", word))
    for written, spoken in SPOKEN:
        text = re.sub(written, spoken, text)
    return word[:1] * (word[0] in "aeiou") + re.sub(r"[aeiouy]", "", text)


SPOKEN = (
    (r"ph", "f"), (r"gh(?=t)", ""), (r"wh", "w"), (r"sc(?=[eiy])", "s"), (r"sch", "sk"),
    (r"tch", "ch"), (r"c(?=[eiy])", "s"), (r"ck|q|c(?!h)", "k"), (r"x", "ks"), (r"z", "s"),
    (r"dg(?=e)", "j"), (r"mb$", "m"), (r"(?<=[ao])w", ""),
)  # fmt: skip


@functools.cache
def word_counts() -> dict[str, int]:
    """English words and how often they were counted."""
    return _counts("frequency_dictionary_en_82_765.txt")


@functools.cache
def corrections() -> SymSpell:
    """The words that are common enough to be what was meant."""
    from symspellpy import SymSpell

    corrections = SymSpell(max_dictionary_edit_distance=MOST_EDITS)
    for word, count in word_counts().items():
        if count >= RARE:
            corrections.create_dictionary_entry(word, count)
    return corrections


@functools.cache
def pair_counts() -> dict[str, int]:
    """Pairs of words that follow each other and how often they did."""
    return _counts("frequency_bigramdictionary_en_243_342.txt")


def _counts(file: str) -> dict[str, int]:
    text = (importlib.resources.files("symspellpy") / file).read_text(encoding="utf-8-sig")
    return {term: int(count) for term, count in (line.rsplit(" ", 1) for line in text.splitlines())}


def rarity(word: str) -> float:
    """How rare a word is: the logarithm of a very common word's count over its own.

    >>> rarity("is") < rarity("river") < rarity("colander")
    True
    """
    return math.log(COMMON / word_counts().get(word, RARE / 10))
