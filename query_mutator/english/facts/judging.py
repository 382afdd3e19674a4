"""Which mentions of a fact there are, and what speaks for and against each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from query_mutator.english.facts.amounts import (
    NUMBER,
    YEAR,
    is_other_unit,
    number_claimed,
    numbers_in,
    plain_number,
    without_thousands,
)
from query_mutator.english.facts.context import Context
from query_mutator.english.facts.mentions import mentions, written
from query_mutator.english.facts.opening import answer_begins
from query_mutator.english.facts.runs import Run, Span, runs_of
from query_mutator.english.facts.signs import signs
from query_mutator.english.facts.tokens import said_around, tokens_of, words_of
from query_mutator.english.facts.undecided import IN_A_RANGE, NOT_CHOSEN, undecided_number
from query_mutator.english.facts.wordings import is_its_sign, short_wordings
from query_mutator.english.spelling import correct_spelling

Fact = tuple[str, ...]
LONGEST = 4000
"""Characters that are looked through: an answer has been given by then."""
MOST_MENTIONS = 8
DENIED, OTHER_UNIT = "denied", "of another unit"
DECIDED_AGAINST = (DENIED, OTHER_UNIT, NOT_CHOSEN, IN_A_RANGE)
"""What keeps a wording from being a fact even where the question is not known."""
LAST_WORD = re.compile(r"\S+(?=\s*\Z)")
ASKS_FOR_A_FORM = re.compile(
    r"\b(?:spel|plural|singular|tense|contraction|comparative|superlative|past|adjective|adverb|"
    r"verb|prefix|suffix)"
)
"""Where the spelling or an ending is what is asked for, no other one will do."""


@dataclass(frozen=True)
class Mention:
    """A place where a fact is written."""

    said: str
    """As the answer writes it."""
    veto: str
    """Why it is not the answer, whatever speaks for it; "" where it may be."""
    signs: dict[str, float]
    rival: str
    """What the answer names before it."""
    amount: str | None
    """The number that the answer comes to; None where the mention is no number."""
    said_amount: str


def find_mentions(answer: str, question: str, reference: str, fact: Fact) -> list[Mention]:
    """The mentions of a fact in an answer; those before the answer begins are left out."""
    text = written(answer[:LONGEST])
    exact = not question or bool(ASKS_FOR_A_FORM.search(question.lower()))
    spans = mentions(
        text, fact, exact=exact, short=short_wordings(question, fact) if question else ()
    )
    if not spans and question and is_its_sign(answer, fact):
        spans = [match.span() for match in LAST_WORD.finditer(text.low)]
    if not spans:
        return []
    known = _known_words(question, reference, fact)
    begin = answer_begins(text, spans, known)
    spans = [span for span in spans if span[0] >= begin][:MOST_MENTIONS]
    tokens = tokens_of(text, begin, known) if spans else []
    runs = runs_of(answer, tokens, spans)
    context = Context(text, begin, question, reference, tokens, runs, spans)
    return [_mention(context, span, fact) for span in spans]


@lru_cache(maxsize=4096)
def _known_words(question: str, reference: str, fact: Fact) -> frozenset[str]:
    """The words that a right answer may repeat without saying anything of its own."""
    known = words_of(question) | words_of(correct_spelling(question))
    spoken = written(reference)
    kept = spoken.low
    for start, end in reversed(mentions(spoken, fact)):
        kept = kept[:start] + " " + kept[end:]
    return known | words_of(kept)


def _mention(context: Context, span: Span, fact: Fact) -> Mention:
    text = context.text
    first, _ = context.token_range(span)
    own = next(run for run in context.runs if run.first <= first <= run.last)
    rivals = context.rivals(own)
    return Mention(
        said=text.raw[span[0] : span[1]],
        veto=_veto(context, span, own, fact),
        signs=signs(context, own, rivals, span),
        rival=context.words(rivals[0]) if rivals else "",
        amount=_amount(context, fact)
        if fact[0][:1].isdigit() and text.low[span[0]].isdigit()
        else None,
        said_amount=_plain_amount(text.low[span[0] : span[1]]),
    )


def _veto(context: Context, span: Span, own: Run, fact: Fact) -> str:
    if context.is_denied(span):
        return DENIED
    if undecided := _undecided(context, span, fact):
        return undecided
    if context.is_ascribed(span):
        return "what others believe"
    if context.is_beside(span):
        return "only beside another thing"
    if (answer := context.answered_before(own)) is not None:
        return f"another answer comes first: {context.words(answer)}"
    return NOT_CHOSEN if context.is_one_of_several(span) else ""


def _undecided(context: Context, span: Span, fact: Fact) -> str:
    """Why a number is not the one that is meant, by what stands beside it."""
    low = context.text.low
    number = NUMBER.match(low[span[0] : span[1]].replace(" ", ""))
    if number is None or ":" in number[1] or "h" in number[1]:
        return ""
    written_fact = " ".join(fact)
    if low[span[1] - 1].isdigit():
        meant = words_of(correct_spelling(context.question)) | words_of(written_fact)
        if is_other_unit(low[span[1] :], meant | words_of(context.reference)):
            return OTHER_UNIT
        known = numbers_in(written(f"{written_fact} {context.reference}").low)
        return undecided_number(low, number[1], span[1], known)
    return ""


def _amount(context: Context, fact: Fact) -> str:
    asked = frozenset(numbers_in(written(context.question).low))
    if "one" in words_of(context.question):
        asked |= {"1"}
    years = bool(YEAR.fullmatch(fact[0])) and not asked
    wordings = frozenset(written(wording).low for wording in fact)
    known = asked | (frozenset(numbers_in(written(context.reference).low)) - wordings)
    words = words_of(context.question) - said_around()
    claimed = number_claimed(context.text.low[context.begin :], known, words, years)
    return without_thousands(claimed)


def _plain_amount(said: str) -> str:
    match = NUMBER.match(said.replace(" ", ""))
    return without_thousands(plain_number(match[1]) if match else said)
