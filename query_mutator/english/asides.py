"""Leaves out the story around a question, where it is sure which words ask."""

from __future__ import annotations

import re

from query_mutator.english.words import AUXILIARIES, FUNCTION_WORDS, WH_WORDS

LEAST_WORDS = 6
"""Shorter texts tell no story."""
LEAST_CONTENT = 2
"""Words that say what is asked about, in a question that can stand alone."""
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
SENTENCE_END = re.compile(r"(?<=[^\s.])[.!?…]+(?:\s+|$)")
_WH = rf"(?:{'|'.join(sorted(WH_WORDS))}|what['’]s|who['’]s|where['’]s)"
_AUX = rf"(?:{'|'.join(sorted(AUXILIARIES))}|must|may|might)"
_BEFORE_WH = (
    r"(?:(?:about |roughly |exactly )?(?:in|on|at|of|from|for|to|by|with|against|under|after|into|"
    r"through|about|roughly|approximately|around) (?:about )?)?"
)
ASKS = re.compile(
    rf"(?:^|(?<=[,;:.!?…\-–—] )|\b(?:so|and|but|now|anyway|because|then|ok|okay|again|asked|asks|ask|"
    rf"asking|know|knows|knew|tell me|tells me|told me|wonder|wondering|wondered|say|remember|forget|"
    rf"forgot|forgetting|forgotten|explain|sure|find out|figure out|decide|argue|arguing|question|is|"
    rf"one|it|him|her|them|me|you) )"
    rf"(?P<asks>{_BEFORE_WH}(?:{_WH})\b|{_AUX} (?:it|the|a|an|there|you|i|we|they|one|my|your)\b"
    rf"|(?:name|convert|calculate|spell|translate|define)\b)",
    re.IGNORECASE,
)
JOINS = re.compile(r"\b(?:when|where|who|which|how|why|what|that)\b", re.IGNORECASE)
PERSON = re.compile(
    r"\b(?:i|i['’]?m|i['’]?ve|i['’]?d|i['’]?ll|my|me|we|we['’]re|our|us|he|she|his|they|mum|mom|dad|"
    r"everyone|everybody|nobody|somebody|someone|grandma|grandpa|granny|uncle|aunt|auntie)\b",
    re.IGNORECASE,
)
REFERS = frozenset(
    "it its it's they them their theirs those these this that that's he she him his her hers there "
    "then both either such same other others another next else one ones these after before".split()
)
"""Words that may point at what was said before."""
GENERAL = frozenset(
    "call called name named word words term thing things mean means kind sort type stand stands "
    "short say exactly really actually correct right proper opposite person people happen happens "
    "first last best total left altogether get use used do make many much long old far tall big "
    "cost number amount answer result".split()
)
"""Words that say little about what is asked for."""
COUNTS = re.compile(
    r"\b(?:how (?:many|much|long|far|old|tall|fast)|what (?:is|are|was)|what time|total|sum|left|"
    r"altogether|each|percent|average)\b",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|half|twice|"
    r"twenty|thirty|forty|fifty|hundred|thousand)\b",
    re.IGNORECASE,
)
TOLD_AFTER = re.compile(
    r"(?:(?:[.!?…]+|,|\s[-–—]+)\s+(?:and |but |because |cause |cos |so )?|\s(?:because|but|and|so|cos|cause) )"
    r"(?=(?:i|i['’]?m|i am|i['’]?ve|my|we|we['’]re|our|everyone|everybody|nobody|somebody|someone|he|she|the kids|"
    r"mum|mom|dad|they['’]re|guests|before i|before we|before my)\b)",
    re.IGNORECASE,
)


def drop_asides(question: str) -> str:
    """The question without what is told around it; itself where the one may need the other.

    >>> drop_asides("my neighbor loves her lawn, and which small animal digs tunnels in a garden")
    'which small animal digs tunnels in a garden'
    >>> drop_asides("We have 3 cats and 2 dogs. How many animals is that?")
    'We have 3 cats and 2 dogs. How many animals is that?'
    """
    text = question.strip()
    if len(WORD.findall(text)) < LEAST_WORDS:
        return question
    starts = [match.start("asks") for match in ASKS.finditer(text)]
    for start in reversed(starts):
        before, asking = text[:start], _without_ending(text[start:])
        if not before.strip():
            return asking
        if _stands_alone(asking) and not _needs_numbers(before, asking) and PERSON.search(before):
            return asking
        break
    return question


def _without_ending(asking: str) -> str:
    """What asks, without a story that is told after it."""
    for match in TOLD_AFTER.finditer(asking):
        kept, told = asking[: match.start()], asking[match.end() :]
        if not _stands_alone(kept) or NUMBER.search(told) or "?" in told or ASKS.search(told):
            continue
        return kept
    return asking


def _stands_alone(asking: str) -> bool:
    """Whether it says what it asks about."""
    words = [word.casefold() for word in WORD.findall(asking)]
    content = 0
    for place, word in enumerate(words):
        if word in REFERS and content < LEAST_CONTENT and not _is_inside(words, place):
            return False
        content += word not in FUNCTION_WORDS and word not in GENERAL and word not in REFERS
    return content >= LEAST_CONTENT and not (words and words[-1] in REFERS)


def _is_inside(words: list[str], place: int) -> bool:
    """Whether a word like `there`, `that` or `one` points at nothing outside."""
    word, before = words[place], words[place - 1] if place else ""
    after = words[place + 1] if place + 1 < len(words) else ""
    if word == "there":
        return before in AUXILIARIES
    if word == "that":
        return bool(before) and before not in AUXILIARIES | WH_WORDS and bool(after)
    if word == "it":
        return after in ("called", "take", "mean", "takes") and len(words) - place > 4
    if word in ("one", "after", "before", "next", "first", "other", "another"):
        return bool(after) and after not in AUXILIARIES
    return False


def _needs_numbers(before: str, asking: str) -> bool:
    """Whether it asks for a number that may come of those in the text before."""
    return bool(COUNTS.search(asking) and NUMBER.search(before)) and len(NUMBER.findall(asking)) < 2
