"""An answer taken apart: its words, what it names, and what is said of each of that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from query_mutator.english.facts.mentions import Written
from query_mutator.english.facts.runs import DETERMINERS, Run, Span, in_spans, joined
from query_mutator.english.facts.tokens import Token, words_of
from query_mutator.english.words import words_in

NOT = (
    r"(?:not|no|never|nor|neither|isn't|aren't|wasn't|weren't|without|except|excluding|unlike|"
    r"rather than|instead of|as opposed to|opposite of|confused with|mistaken for|do not use|"
    r"don't use|leave out)"
)
SMALL = (
    r"(?:(?:a|an|the|really|just|in|on|at|to|from|about|called|of|by|for|already|even|be|use)\s+)"
)
DENIED_BEFORE = re.compile(
    rf"\b{NOT}[\s,:]+{SMALL}{{0,2}}(?:(?!(?:is|are|was|were)\b)[^\W\d_]+\s+)?$"
)
DENIED_AFTER = re.compile(
    r"^\W{0,2}(?:(?:itself|proper|really|actually|strictly speaking)\W+)*"
    r"(?:(?:is|are|was|were|does|do|did|has|have|had|would|could|can|will) not(?! only)\b|"
    r"(?:isn|aren|wasn|weren|doesn|don|didn|hasn|couldn|wouldn)'t\b|cannot\b|can't\b|"
    r"is (?:a close )?second\b|being (?:only )?(?:the|a)\b|serving\b|merely\b|excluded\b)"
)
BESIDE = re.compile(
    r"\b(?:than|(?<!sounds )(?<!looks )like|unlike|close to|near|next to|"
    r"(?:north|south|east|west) of|followed by|friend of|help of|similar to|related to|"
    r"compared (?:to|with)|as (?:\w+ )?as|size of|reminds? \w+ of|likened to that of|that of|"
    r"opposite of|enemy of|while|whereas|until \d+ it was|formerly|previously|"
    r"(?<!known )(?<!such )(?<!called )(?<!to )as|superseded|preferred to|border with|"
    r"named after|in response to|transferred from)"
    r"\s+(?:(?:a|an|the|his|her|their|soviet|mount|planet)\s+){0,2}$"
)
UNDECIDED = re.compile(
    r"\b(?:maybe|perhaps|either|not sure|can't say|cannot say|not able to (?:say|tell)|one of "
    r"(?:these|those|them)|candidates|options|possibilit|could be|might be|depends|hard to say|"
    r"don't know|such as|for example|several|various|four kinds|as a language model)\b"
)
UNABLE = re.compile(
    r"\b(?:one of (?:these|those|them)|candidates|as a language model|not sure which|"
    r"can't (?:say|tell) which|hard to say|don't know)\b"
)
ASCRIBED = re.compile(
    r"\b(?:(?:some|many|most|other) people (?:\w+ )?(?:say|think|believe|assume|call)|"
    r"people often (?:say|think|believe)|you (?:might|may|would) think|"
    r"often (?:thought|believed|said|assumed))\b"
)
BUT = re.compile(r"\b(?:but|however|actually|officially|in fact)\b")
NEGATED = re.compile(r"\b(?:not|never|cannot|no longer)\b|n'?t\b")
CLAUSE_BREAK = re.compile(r"[.!?;\n](?=\s)")


PARTS = words_in("; but while whereas ( )")


AFTER_A_VERB = words_in("into to on from with at as for by")
SHORTEST_VERB = 5
"""Letters: red is no verb, and no bed."""
SORTS = words_in("of sort type kind form result")


@dataclass(frozen=True)
class Context:
    """An answer in which a fact stands at `spans`."""

    text: Written
    begin: int
    """Where the answer begins to answer."""
    question: str
    reference: str
    tokens: Sequence[Token]
    runs: Sequence[Run]
    spans: Sequence[Span]

    def token_range(self, span: Span) -> tuple[int, int]:
        """The first and last token of a span."""
        start, end = span
        inside = [
            place
            for place, token in enumerate(self.tokens)
            if token.start < end and token.end > start
        ]
        return inside[0], inside[-1]

    def words(self, run: Run) -> str:
        """What a run names, as it is written."""
        return " ".join(token.raw for token in self.tokens[run.first : run.last + 1])

    def rivals(self, own: Run) -> list[Run]:
        """What the answer names before `own`, of its kind, and does not deny."""
        return [
            run
            for run in self.runs[: self.runs.index(own)]
            if not run.fact and self._is_of_kind(run, own) and not self.is_denied(self.span(run))
        ]

    def _is_of_kind(self, run: Run, own: Run) -> bool:
        """Whether a run may be an answer where `own` is: a name for a name, and no verb."""
        if own.name and not run.name and not self.tokens[run.first].text[0].isdigit():
            return run.opens
        return not (self.is_verbal(run) or self._is_echo(run))

    def _is_echo(self, run: Run) -> bool:
        """Whether it is a name of the question, misspelt: Gizeh where Giza was asked about."""
        if not run.name or run.first != run.last:
            return False
        word = self.tokens[run.first].text
        return any(
            word[: max(3, len(one) - 1)] == one[: max(3, len(one) - 1)]
            for one in words_of(self.question)
            if len(one) > 3
        )

    def describes(self, run: Run, own: Run) -> bool:
        """Whether a run only says what sort of thing `own` is: "a mineral composed of carbon"."""
        sort = self.word_before(run.first) in SORTS or self._after_determiner(run)
        same = run.sentence == own.sentence and not run.name
        between = {token.text for token in self.tokens[run.last + 1 : own.first]}
        return sort and same and not between & PARTS

    def word_before(self, place: int) -> str:
        """The word before, without determiners."""
        while place > 0 and self.tokens[place - 1].text in DETERMINERS:
            place -= 1
        return self.tokens[place - 1].text if place > 0 else ""

    def is_verbal(self, run: Run) -> bool:
        """Whether a run is but a verb or an adverb, by its ending and by what follows."""
        token = self.tokens[run.first]
        short = len(token.text) < SHORTEST_VERB
        if run.first != run.last or run.name or short or self._after_determiner(run):
            return False
        following = self.tokens[run.last + 1].text if run.last + 1 < len(self.tokens) else ""
        return token.text.endswith(("ed", "ing", "ly")) or (
            token.text.endswith("s") and following in AFTER_A_VERB
        )

    def _after_determiner(self, run: Run) -> bool:
        return run.first > 0 and self.tokens[run.first - 1].text in DETERMINERS

    def span(self, run: Run) -> Span:
        """Where a run stands in the text."""
        return self.tokens[run.first].start, self.tokens[run.last].end

    def is_denied(self, span: Span) -> bool:
        """Whether what stands there is said not to be."""
        if DENIED_BEFORE.search(self.clause_ahead(span)):
            return True
        # "Which letter is not pronounced?": "K is not."
        asked = NEGATED.search(self.question.lower())
        return not asked and bool(DENIED_AFTER.match(self.text.low[span[1] :]))

    def is_beside(self, span: Span) -> bool:
        """Whether what stands there is only compared with, or beside, another thing."""
        match = BESIDE.search(self.clause_ahead(span))
        # "Who is it named after?": "It is named after Ada."
        meant = words_of(self.question) | words_of(self.reference) | DETERMINERS
        return match is not None and not set(match[0].split()) <= meant

    def answered_before(self, own: Run) -> Run | None:
        """What a sentence before says is asked for, where `own` is said of something else."""
        rivals = self.rivals(own)
        elsewhere = own.opens or any(
            run.opens and run.sentence == own.sentence and not self.describes(run, own)
            for run in rivals
        )
        before = (
            run
            for run in rivals
            if run.sentence < own.sentence and (run.alone or (run.stated and not run.emphasised))
        )
        return next(before, None) if elsewhere else None

    def is_one_of_several(self, span: Span) -> bool:
        """Whether what stands there is in a list from which the answer does not choose."""
        first, last = self.token_range(span)
        own = next(run for run in self.runs if run.first <= first <= run.last)
        of_fact = in_spans(self.tokens, self.spans)
        before, after = joined(self.tokens, of_fact, own.first, max(own.last, last))
        answer = self.text.low[self.begin :]
        if not (before or after):
            return False
        if UNABLE.search(answer):
            return True
        choice = "or" in (before, after) or "/" in (before, after)
        ors = sum(token.text == "or" for token in self.tokens if token.sentence == own.sentence)
        return (choice or bool(before and after)) and (ors > 1 or bool(UNDECIDED.search(answer)))

    def is_ascribed(self, span: Span) -> bool:
        """Whether others are said to believe it, before a but."""
        ahead, behind = self.clause_ahead(span), self.text.low[span[1] :]
        return bool(ASCRIBED.search(ahead)) and bool(BUT.search(behind))

    def clause_ahead(self, span: Span) -> str:
        """The text between the last stop and the span."""
        return CLAUSE_BREAK.split(self.text.low[self.begin : span[0]])[-1]
