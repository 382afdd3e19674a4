"""The words of a text as they can be compared: numbers in digits, no accents, no markup."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from query_mutator.english.spelling import is_written, sound
from query_mutator.english.words import FUNCTION_WORDS
from query_mutator.objectives.closeness.cues import listed

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|\d+(?:st|nd|rd|th)(?![^\W\d_])|\d+(?:[.:/]\d+)*"
    r"|[^\W\d_]+(?:'[^\W\d_]+)?(?:\d[^\W_]*)?|[^\w\s]"
)
_PICTURES = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]+")
_THOUSANDS = re.compile(r"(?<=\d)[, ](?=\d{3}\b)")
_NO_FRACTION = re.compile(r"(?<=\d)\.0+\b")
_NOT_SAID = re.compile(r"'s\b|[*_`#]")
_UP_TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_UNITS = {word: value for value, word in enumerate(_UP_TO_NINETEEN.split())}
_TEN_BY_TEN = "ten twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * place for place, word in enumerate(_TEN_BY_TEN.split(), 1) if place > 1}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_EMPTY = FUNCTION_WORDS | listed("between because most")
STOPS = frozenset(".!?…|")
_ENDINGS = frozenset(("",)) | listed(
    "a able al an ance ans ant ate ated ating ation ative ch d e ed en ence ent er ers es ese f fe "
    "i ian ians ic ies ily iness ing ion ions is ise ism ist ists ity ize ly ment ments n ness ns "
    "o on or ors s um us ves y"
)
_SHARED = 4
"""Letters that forms of one word have in common."""
_LONGEST_STEM = 7
"""Letters in common that make an unknown word a form of another."""
_BRITISH = (
    (r"(?<=[a-z]{2})our", "or"),
    (r"(?<=[bt])re\b", "er"),
    (r"is(?=e|ing|ation)", "iz"),
    (r"[ao]e", "e"),
    (r"grey", "gray"),
)
_ABBREVIATED = listed(
    "january february march april june july august september october november december monday "
    "tuesday wednesday thursday friday saturday sunday"
)
MISSPELT = 0.8
"""What a misspelt word counts."""


@dataclass(frozen=True)
class Token:
    """A word or a sign. `name`: it has a capital that its place does not ask for."""

    word: str
    name: bool = False

    @property
    def is_word(self) -> bool:
        return self.word[0].isalnum()

    @property
    def is_number(self) -> bool:
        return self.word[0].isdigit()

    @property
    def has_content(self) -> bool:
        return self.is_word and self.word not in _EMPTY


def tokens(text: str) -> list[Token]:
    """The words and signs of a text; lines and pictures end a sentence.

    >>> [token.word for token in tokens("It's **twenty-one**, or\\n500m of CO₂.")]
    ['it', '21', ',', 'or', '.', '500', 'm', 'of', 'co2', '.']
    """
    text = unicodedata.normalize("NFKD", _PICTURES.sub(" . ", text.replace("\n", " . ")))
    text = "".join(sign for sign in text if not unicodedata.combining(sign)).replace("’", "'")
    text = _NO_FRACTION.sub("", _THOUSANDS.sub("", text))
    found, starts = [], True
    for written in _WORD.findall(_NOT_SAID.sub("", text)):
        word = written.casefold()
        capital = written[0].isupper() and len(written) > 1
        found.append(Token(word, capital and not (starts and is_written(word))))
        starts = word in STOPS or (starts and not word[0].isalpha())
    return _with_numbers(found)


def _with_numbers(found: Sequence[Token]) -> list[Token]:
    """The tokens with numbers in words as digits."""
    joined: list[Token] = []
    place = 0
    while place < len(found):
        run, after = _number_words(found, place)
        if not run:
            joined.append(found[place])
            place += 1
            continue
        value = _value(run)
        if run[0] in _SCALES and joined and joined[-1].word == "a":
            joined.pop()
        elif run[0] in _SCALES and joined and joined[-1].word.replace(".", "", 1).isdigit():
            value = int(float(joined.pop().word) * value)
        joined.append(Token(str(value)))
        place = after
    return joined


def _number_words(found: Sequence[Token], start: int) -> tuple[list[str], int]:
    """The words of the number that begins at a place, and the place after it."""
    run: list[str] = []
    place = start
    while place < len(found):
        skipped = place
        if run and found[place].word in ("-", "and"):
            joins = run[-1] in _TENS if found[place].word == "-" else run[-1] in _SCALES
            skipped += joins
        word = found[skipped].word if skipped < len(found) else ""
        if not _continues(run, word):
            break
        run.append(word)
        place = skipped + 1
    return run, place


def _continues(run: Sequence[str], word: str) -> bool:
    if not run or run[-1] in _SCALES:
        return word in _UNITS or word in _TENS or word in _SCALES
    return word in _SCALES or (run[-1] in _TENS and 0 < _UNITS.get(word, 0) < 10)


def _value(run: Sequence[str]) -> int:
    total = current = 0
    for word in run:
        if word == "hundred":
            current = max(current, 1) * 100
        elif word in _SCALES:
            total, current = total + max(current, 1) * _SCALES[word], 0
        else:
            current += _UNITS[word] if word in _UNITS else _TENS[word]
    return total + current


@functools.lru_cache(maxsize=200_000)
def same_word(one: str, other: str) -> bool:
    """Whether two words are forms of one word.

    >>> same_word("mexico", "mexican"), same_word("cherries", "cherry"), same_word("80", "8")
    (True, True, False)
    """
    if one == other:
        return True
    if one[0] != other[0] or not (one[0].isalpha() and other[0].isalpha()):
        return False
    if singular(one) == singular(other):
        return True
    shared = _shared_start(one, other)
    if shared < _SHARED or 2 * shared < max(len(one), len(other)):
        return False
    return _is_ending(one, shared) and _is_ending(other, shared)


def _is_ending(word: str, start: int) -> bool:
    ending = word[start:]
    doubled = ending[:1] == word[start - 1] and ending[1:] in _ENDINGS
    return ending in _ENDINGS or doubled


def _shared_start(one: str, other: str) -> int:
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return shared


def singular(word: str) -> str:
    """The word without the s of a plural."""
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and re.search("(?:ss|sh|ch|x|z)es$", word):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


@functools.lru_cache(maxsize=200_000)
def reads_as(said: str, wanted: str) -> float:
    """How far a word can be read as another: 1 for its forms, less where it is misspelt.

    >>> reads_as("mozarela", "mozzarella"), reads_as("harbour", "harbor"), reads_as("wed", "wed")
    (0.8, 1.0, 1.0)
    >>> reads_as("collagen", "keratin")
    0.0
    """
    if same_word(said, wanted):
        return 1.0
    if not (said.isalpha() and wanted.isalpha()):
        return 0.0
    if singular(american(said)) == singular(american(wanted)):
        return 1.0
    if wanted in _ABBREVIATED and len(said) >= 3 and wanted.startswith(said):
        return 1.0
    return MISSPELT if _misspelt(said, wanted) else 0.0


def american(word: str) -> str:
    """The word as Americans spell it."""
    for british, spelt in _BRITISH:
        word = re.sub(british, spelt, word)
    return word


def _misspelt(said: str, wanted: str) -> bool:
    """Whether an unknown word is another one with a slip, or with another ending."""
    if len(wanted) <= _SHARED or len(said) < _SHARED or is_written(said):
        return False
    if _shared_start(said, wanted) >= _LONGEST_STEM or _one_slip(said, wanted):
        return True
    return said[0] == wanted[0] and len(sound(said)) > 1 and sound(said) == sound(wanted)


def _one_slip(one: str, other: str) -> bool:
    """Whether one letter was left out, put in, changed, or two were swapped."""
    shared = _shared_start(one, other)
    rest, other_rest = one[shared:], other[shared:]
    swapped = rest[1::-1] + rest[2:] if len(rest) > 1 else ""
    return other_rest == swapped or any(
        rest[cut:] == other_rest[other_cut:] for cut, other_cut in ((1, 0), (0, 1), (1, 1))
    )
