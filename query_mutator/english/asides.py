"""Leaves out the story around a question, where it is sure which words ask."""

from __future__ import annotations

import re

from query_mutator.english.words import (
    AUXILIARIES,
    FUNCTION_WORDS,
    LONGEST_QUESTION,
    WH_WORDS,
    words_in,
)

LEAST_WORDS = 6
"""Shorter texts tell no story."""
LEAST_CONTENT = 2
"""Words that say what is asked about, in a question that can stand alone."""
LEAST_NUMBERS = 2
"""Numbers of a problem that is told as a whole."""

_WH = rf"(?:{'|'.join(sorted(WH_WORDS))}|what['’]s|who['’]s|where['’]s)"
_AUX = rf"(?:{'|'.join(sorted(AUXILIARIES))}|must|may|might)"
_SUBJECT = r"(?:it|the|a|an|there|you|i|we|they|one|my|your)"
_ORDER = r"(?:name|convert|calculate|spell|translate|define)"
_BEFORE_WH = (
    r"(?:(?:about |roughly |exactly )?(?:in|on|at|of|from|for|to|by|with|against|under|after|into"
    r"|through|about|roughly|approximately|around) (?:about )?)?"
)
_JOINED = (
    r"(?:^|(?<=[,;:.!?…\-–—] )|\b(?:so|and|but|now|anyway|because|then|ok|okay|again|please) )"
)
_SAID = (
    r"(?:asked|asks|ask|asking|know|knows|knew|tell me|tells me|told me|wonder|wondering|wondered"
    r"|say|remember|forget|forgot|forgetting|forgotten|explain|sure|find out|figure out|decide"
    r"|argue|arguing|question|is|one|it|him|her|them|me|you)"
)
_I = r"(?:i|i['’]?m|i['’]?ve|i['’]?d|i['’]?ll|my|we|we['’]re|our|he|she|his|mum|mom|dad)"
_THEY = r"(?:everyone|everybody|nobody|somebody|someone|the kids|guests|they['’]re)"


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
SENTENCE_END = re.compile(r"(?<=[^\s.])[.!?…]+(?:\s+|$)")
ASKS = _pattern(
    rf"{_JOINED}(?P<order>{_AUX} {_SUBJECT}\b|{_ORDER}\b)"
    rf"|(?P<joined>{_JOINED})?(?P<said>\b{_SAID} )?(?P<asks>\b{_BEFORE_WH}{_WH})\b"
)
DIRECT = _pattern(
    rf"(?:{_BEFORE_WH}(?:what|which(?! \w+(?:s|ed)\b)|how|whose|why)|{_BEFORE_WH}{_WH} {_AUX}"
    rf"|\w+['’]s|{_AUX}|{_ORDER})\b"
)
"""Begins a question of its own, and nothing that belongs to the words before."""
GOES_ON = _pattern(r"\b(?:and|so|but|because)\b")
SUPPOSED = _pattern(r"\b(?:if|suppose|when|while|given)\b")
"""Begins a condition, without which the question is another one."""
TELLS = _pattern(rf"\b(?:{_I}|{_THEY}|me|us|grandma|grandpa|granny|uncle|aunt|auntie)\b")
"""Stories are about people."""
TOLD_AFTER = _pattern(
    r"(?:(?:[.!?…]+|,|\s[-–—]+)\s+(?:and |but |because |cause |cos |so )?"
    rf"|\s(?:because|but|and|so|cos|cause) )(?=(?:{_I}|{_THEY}|before (?:i|we|my))\b)"
)
VERB = _pattern(rf"\b{_AUX}\b")
REFERS = words_in(
    "it its it's they them their theirs those these this that that's he she him his her hers there "
    "then both either such same other others another next else one ones after before"
)
"""Words that may point at what was said before."""
GENERAL = words_in(
    "call called name named word words term thing things mean means kind sort type stand stands "
    "short say exactly really actually correct right proper opposite person people happen happens "
    "first last best total left altogether get use used do make many much long old far tall big "
    "cost number amount answer result"
)
"""Words that say little about what is asked for."""
ABOUT_A_WORD = _pattern(r"\b(?:stands? for|means?)\b")
COUNTS = _pattern(
    r"\b(?:how (?:many|much|long|far|old|tall|fast|big)|(?:what|which|the)(?: \w+)? (?:change|date"
    r"|day|time|number|age|price|area|rent|bill|share|weekday)|(?:what|which) (?:do|did|will|should"
    r"|must|is|was) (?:i|we|it|my|our)|total|sum|left|altogether|each|percent|average|pay|owe)\b"
)
"""Asks for what may have to be calculated."""
CONVERTS = _pattern(
    r"\bhow many \w+(?: \w+)? (?:(?:are|is)(?: there)?(?: in)?|in|make|makes) "
    r"(?:a|an|one|\d+|two|half)\b"
)
NUMBER = _pattern(
    r"\d+|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|half|twice|twenty"
    r"|thirty|forty|fifty|hundred|thousand)\b"
)


def drop_asides(question: str) -> str:
    """The question without what is told around it; itself where the one may need the other.

    >>> drop_asides("my neighbor loves her lawn, and which small animal digs tunnels in a garden")
    'which small animal digs tunnels in a garden'
    >>> drop_asides("We have 3 cats and 2 dogs. How many animals is that?")
    'We have 3 cats and 2 dogs. How many animals is that?'
    """
    text = question.strip()
    if len(text) > LONGEST_QUESTION or len(WORD.findall(text)) < LEAST_WORDS:
        return question
    start = _start_of_asking(text)
    if start is None:
        return question
    before, asking = text[:start], _without_ending(text[start:])
    if not before:
        return asking
    told = TELLS.search(before) or (before.rstrip()[-1] in ".!?…" and VERB.search(before))
    if not told or not _stands_alone(asking):
        return question
    if not _needs_numbers(before, asking):
        return asking
    return _from_first_number(before) + asking


def _start_of_asking(text: str) -> int | None:
    """Where the words begin that ask last, with the conditions that they are asked under."""
    start: int | None = None
    for match in ASKS.finditer(text):
        place = match.start("order") if match["order"] else match.start("asks")
        joined = bool(match["order"]) or match["joined"] is not None
        if not joined and not match["said"]:
            continue
        if start is not None and not SENTENCE_END.search(text, start, place):
            goes_on = bool(GOES_ON.search(text, start, place))
            begins = goes_on or (joined and not match["order"])
            if not begins or not DIRECT.match(text, place):
                continue
        start = place
    if start is None:
        return None
    sentence = max((end.end() for end in SENTENCE_END.finditer(text, 0, start)), default=0)
    supposed = SUPPOSED.search(text, sentence, start)
    return supposed.start() if supposed else start


def _without_ending(asking: str) -> str:
    """What asks, without a story that is told after it."""
    for match in TOLD_AFTER.finditer(asking):
        kept, told = asking[: match.start()], asking[match.end() :]
        asks_more = "?" in told or ASKS.search(told)
        if _stands_alone(kept) and not NUMBER.search(told) and not asks_more:
            return kept
    return asking


def _stands_alone(asking: str) -> bool:
    """Whether it says what it asks about."""
    words = [word.casefold() for word in WORD.findall(asking)]
    content = 0
    for place, word in enumerate(words):
        if word in REFERS:
            if content < LEAST_CONTENT and not _is_inside(words, place):
                return False
        else:
            content += word not in FUNCTION_WORDS | GENERAL
    least = 1 if ABOUT_A_WORD.search(asking) else LEAST_CONTENT
    return content >= least and words[-1] not in REFERS


def _is_inside(words: list[str], place: int) -> bool:
    """Whether a word that may refer to something points at nothing outside of the question."""
    before, word, after = ["", *words, ""][place : place + 3]
    follow = len(words) - place - 1
    if word == "there":
        return before in AUXILIARIES
    if word == "that":
        return before not in AUXILIARIES | WH_WORDS and follow > 0
    if word == "it":
        return (
            after in ("called", "take", "mean", "takes", "is", "was") and follow > LEAST_WORDS - 3
        )
    if word == "they":
        return before in ("do", "did") and "in" in words[place:-1]
    if word in ("one", "after", "before", "next", "other", "another"):
        return follow > 0 and after not in AUXILIARIES | {"1", "one", "ones"}
    return False


def _needs_numbers(before: str, asking: str) -> bool:
    """Whether it asks for a number that may come of those in the text before."""
    if not COUNTS.search(asking) or not NUMBER.search(before):
        return False
    return not CONVERTS.search(asking) and len(NUMBER.findall(asking)) < LEAST_NUMBERS


def _from_first_number(before: str) -> str:
    """What is told, from the first sentence with a number on."""
    number = NUMBER.search(before)
    ends = [0, *(end.end() for end in SENTENCE_END.finditer(before))]
    return before[max(end for end in ends if not number or end <= number.start()) :]
