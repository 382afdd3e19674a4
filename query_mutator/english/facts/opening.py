"""Where an answer begins to answer: after a greeting, a concession, or taking itself back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from query_mutator.english.facts.mentions import Written
from query_mutator.english.facts.tokens import is_among, said_around, tokens_of
from query_mutator.english.words import words_in

Span = tuple[int, int]
RETRACTS = re.compile(
    r"\b(?:actually,? no\b|no,? wait\b|wait,? no\b|wait\b|scratch that|"
    r"(?:i )?(?:have to |must )?correct (?:myself|that)|correction|"
    r"i was mistaken|i mean(?:t)?(?! to)\b|i was wrong|that's wrong|"
    r"let me (?:check|double-check|correct)(?: that| it)?|double-check|strike that|no,? sorry|"
    r"sorry,? no\b|sorry,? that(?:'s| was)(?: wrong)?|oops|on second thou?ght|i take that back)|"
    r"(?:\.\.\.|…|[-–—]) ?(?:hm+,? )?no\b"
)
LEADS = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:although|though|while|whereas|unlike|contrary to|as|since|because|"
    r"apart from|besides|despite|in spite of)\b[^.!?\n,]*,(?=[^.!?\n]*\w)"
)
"""A clause at the beginning of a sentence that concedes or explains: the claim comes after it."""
EXCLAIMED = re.compile(r"[^.!?\n]*(?:!|\.\.\.|…|\?)+(?=\s|$)")
ASSERTS = re.compile(r"\b(?:it's|that's|they're|is|are|was|were|called|has|have)\b")
ABOUT_IT = re.compile(r"\W*(?:it|that|they|those|these|this)\b")
CHATS = re.compile(r"\b(?:i'm|glad|here's|let's|question|choice|congrat|no worries)")
BARE = words_in("a an the it is it's that's that was those they they're are")
GREETS = frozenset(("hey", "hi", "hello"))
MOST_WORDS_OF_BANTER = 14
MOST_WORDS_OF_A_BARE_ANSWER = 3


def answer_begins(text: Written, spans: Sequence[Span], known: frozenset[str]) -> int:
    """The place of the first sentence that may answer, where the fact stands at `spans`."""
    taken_back = _after_retraction(text, spans, known)
    start = _after_banter(text, taken_back, spans, known)
    lead = LEADS.match(text.low, start)
    if lead and any(span[0] >= lead.end() for span in spans):
        return lead.end()
    return start


def _after_retraction(text: Written, spans: Sequence[Span], known: frozenset[str]) -> int:
    start = 0
    for match in RETRACTS.finditer(text.low):
        if not text.low[: match.start()].strip():
            continue
        later = any(span[0] >= match.end() for span in spans)
        if later or any(token.new for token in tokens_of(text, match.end(), known)):
            start = match.end()
    return start


def _after_banter(text: Written, start: int, spans: Sequence[Span], known: frozenset[str]) -> int:
    while match := EXCLAIMED.match(text.low, start):
        end = match.end()
        if not re.search(r"\w", text.low[end:]):
            return start
        inside = any(start <= span[0] < end for span in spans)
        later = any(span[0] >= end for span in spans)
        if _answers(text.low[start:end], inside, later, known):
            return start
        start = end
    return start


def _answers(sentence: str, inside: bool, later: bool, known: frozenset[str]) -> bool:
    """Whether an exclamation or question is more than banter; `inside` where the fact is in it."""
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", sentence)
    bare = [word for word in words if word not in BARE]
    first = words[0] if words else ""
    if inside and len(bare) <= MOST_WORDS_OF_A_BARE_ANSWER and first not in GREETS:
        return True
    if inside and not later and first not in GREETS and not CHATS.search(sentence):
        return True
    echoes = any(is_among(word, known) and word not in said_around() for word in words)
    asserts = ASSERTS.search(sentence) and (echoes or ABOUT_IT.match(sentence))
    if (asserts or len(words) > MOST_WORDS_OF_BANTER) and not CHATS.search(sentence):
        return True
    return len(bare) <= 2 and not re.search(r"!|…|\.\.\.", sentence)
