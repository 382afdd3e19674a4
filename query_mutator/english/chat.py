"""Writes a chat message as a sentence: no shouting, no abbreviations, nothing said beside it."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

from query_mutator.english.spelling import word_counts
from query_mutator.english.words import FUNCTION_WORDS, LONGEST_QUESTION, words_in

TABLES_FILE = Path(__file__).with_name("chat.toml")
LETTER_FOLLOWS = frozenset(
    ("a", "an", "the", "letter", "letters", "vitamin", "in", "is", "and", "with")
)
"""After these a letter is a letter."""
SHOUTED_WORDS = 3
"""Fewer words in capitals are an abbreviation."""
SHORT = 2
"""Letters of an abbreviation that is another one in capitals."""
LONGEST_SHORT = 4
"""Letters of most abbreviations that are written in capitals."""
LONGEST_WORD = 30
PLAIN = 20_000_000
"""Times a word was counted that is not an abbreviation when it is shouted."""
WORD = re.compile(r"(?<![\w'’])[^\W_]+(?:['’][^\W_]+)*(?![\w'’])")
SHORT_WORD = re.compile(r"(?<![\w'’.@/-])(?:w/o\b|w/|[A-Za-z0-9]+)(?![\w'’@/-]|\.\w)")
LAUGHS = re.compile(
    r"(?<!\bdoes)(?<!\bword)(?<!\bsay)(?<!\bis)(?<!\bof)(?<!\bmean)(?<!\bmeans)(?<!\bthe)"
    r"(?<=[^\W_])\s+(?:lo+l|lmf?ao|rofl|haha\w*)(?=\s+\w)(?!\s+(?:mean|stand)s?\b)",
    re.IGNORECASE,
)
MARKS = re.compile(r"[!?,;](?:\s*[!?,;])+")


def calm_down(question: str) -> str:
    """What is shouted in small letters, with one mark where there are many.

    >>> calm_down("WHO PAINTED IT!!! MY TEAM IS WAITING!!!")
    'who painted it! my team is waiting!'
    >>> calm_down("WHAT DOES USB STAND FOR?"), calm_down("NASA!")
    ('what does USB stand for?', 'NASA!')
    """
    if len(question) > LONGEST_QUESTION or not WORD.search(question):
        return question
    text = MARKS.sub(_one_mark, question)
    shouted = len(WORD.findall(text)) >= SHOUTED_WORDS and text.upper() == text != text.lower()
    return WORD.sub(lambda match: _unshouted(match[0]), text) if shouted else text


def write_out(question: str) -> str:
    """The question with the abbreviations of chats written out.

    >>> write_out("wat r the 2 things u need b4 u go 2 bed n wats the word 4 it")
    'what are the 2 things you need before you go to bed and what is the word for it'
    >>> write_out("is the letter u a vowel, and is it in R, Ur or U?")
    'is the letter u a vowel, and is it in R, Ur or U?'
    """
    if len(question) > LONGEST_QUESTION:
        return question
    tables = _tables()
    written, digits = tables["write"], tables["digits"]
    is_chat = any(word.casefold() in tables["unmistakable"] for word in WORD.findall(question))

    def put(match: re.Match[str]) -> str:
        word = match[0]
        said = question[max(0, match.start() - LONGEST_WORD) : match.start()].rstrip()
        before = _last_word(said)
        after = _first_word(question[match.end() : match.end() + LONGEST_WORD])
        if not is_chat and (word in digits or word.casefold() in tables["ambiguous"]):
            return word
        if word in digits and (before in digits[word]["after"] or after in digits[word]["before"]):
            return str(digits[word]["meant"])
        named = after in ("mean", "means", "stand", "stands") or before in ("word", "abbreviation")
        if named or (word[0].isupper() and said and said[-1] not in ".!?"):
            return word
        meant = written.get(word if len(word) <= SHORT else word.casefold())
        if meant is None or (len(word) == 1 and word != "i" and before in LETTER_FOLLOWS):
            return word
        return str(meant[0].upper() + meant[1:] if word[0].isupper() else meant)

    return SHORT_WORD.sub(put, question)


def drop_chatter(question: str) -> str:
    """The question without what is only said to whoever reads it.

    >>> drop_chatter("serious q the largest planet, what is it, cant think rn lol")
    'the largest planet, what is it'
    >>> drop_chatter("what does lol mean"), drop_chatter("lol")
    ('what does lol mean', 'lol')
    """
    if len(question) > LONGEST_QUESTION:
        return question
    before, text = "", LAUGHS.sub(".", " ".join(question.split()))
    between, opening, closing = _chatter()
    while before != text:
        before = text
        text = between.sub(_joined, text)
        text = closing.sub("", opening.sub("", text))
    return text if WORD.search(text) else question


def _joined(match: re.Match[str]) -> str:
    """Nothing where a sentence was interrupted, else the stronger of the two marks."""
    marks = match["before"] + match["after"]
    strong = next((mark for mark in ".!?" if mark in marks), ",")
    last = re.search(r"[^\W_]+(?=\W*$)", match.string[: match.start()])
    interrupted = strong == "," and last is not None and last[0].casefold() in INTERRUPTED
    return " " if interrupted else f"{strong} "


INTERRUPTED = words_in(
    "the a an of in on at to for with from by and or but so is are was were do does did you i we "
    "they who which what how many much that my your called like not when where if as"
)
"""Words that no clause ends with: a comma after them belongs to what was put in."""


def _unshouted(word: str) -> str:
    lower = word.casefold()
    if lower in FUNCTION_WORDS or len(word) > LONGEST_SHORT:
        return lower
    return lower if word_counts().get(lower, 0) >= PLAIN else word


def _one_mark(match: re.Match[str]) -> str:
    return next(mark for mark in "?!,;" if mark in match[0]) + match[0][len(match[0].rstrip()) :]


def _last_word(text: str) -> str:
    found = re.search(r"[\w'’]+(?=\W{0,2}$)", text)
    return found[0].casefold() if found else ""


def _first_word(text: str) -> str:
    found = re.match(r" ([\w'’]+)", text)
    return found[1].casefold() if found else ""


@functools.cache
def _tables() -> dict[str, Any]:
    tables = tomllib.loads(TABLES_FILE.read_text(encoding="utf-8"))
    tables["ambiguous"] = set(tables["ambiguous"].split())
    tables["unmistakable"] = set(tables["unmistakable"].split())
    for digit in tables["digits"].values():
        digit["before"], digit["after"] = set(digit["before"].split()), set(digit["after"].split())
    return tables


@functools.cache
def _chatter() -> tuple[re.Pattern[str], ...]:
    """What is said beside a question: inside it, before it and after it."""
    apostrophes = {
        word.replace("'", ""): word.replace("'", "['’]?") for word in _tables()["apostrophes"]
    }

    def any_of(phrases: list[str]) -> str:
        longest_first = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
        spelt = [
            " ".join(apostrophes.get(word, re.escape(word)) for word in phrase.split())
            for phrase in longest_first
        ]
        return rf"(?:{'|'.join(spelt)})\b"

    one = any_of(_tables()["drop"])
    alone = any_of(_tables()["drop"] + _tables()["drop_alone"])
    some, some_alone = rf"{one}(?:[\s,]+{one})*", rf"{alone}(?:[\s,]+{alone})*"
    first = any_of(_tables()["drop_first"])
    patterns = (
        rf"\s*(?P<before>[,.!?]|\s-)\s*{some}\s*(?P<after>[,.!?])\s*(?=\w)",
        rf"^(?:(?:{first}\s+)+(?=\w)|{some}\s*[,.!?:]|{some_alone}\s*[.!?:])\s*",
        rf"\s*(?:[,.!?…-]+\s*{some}|[.!?…]+\s*{some_alone}|\s(?:lol|pls|plz|please|thx|rn|tho|lmao))(?=\W*$)",
    )
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
