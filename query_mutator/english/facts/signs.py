"""What tells that a mention of a fact is the answer that is given, not something else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from query_mutator.english.facts.context import NEGATIVE, UNDECIDED, Context
from query_mutator.english.facts.runs import Run, Span
from query_mutator.english.words import words_in

EXPLANATION = re.compile(r"\b(?:why|how (?:do|does|can|could|should|would)|what happens)\b")

PREPOSITIONS = words_in(
    "by of with to into in from on for over at through after before under about"
)


def signs(context: Context, own: Run, rivals: Sequence[Run], span: Span) -> dict[str, float]:
    """What speaks for and against a mention being the answer, by name."""
    tokens = context.tokens
    first, last = context.token_range(span)
    before = context.runs[: context.runs.index(own)]
    same = [run for run in rivals if run.sentence == own.sentence]
    earlier = [run for run in rivals if run.sentence < own.sentence]
    capital = float(own.name)
    words_before = [t.text for t in tokens[:first] if t.clause == own.clause]
    later = float(bool(before))
    claims = [run for run in rivals if run.after_copula or run.opens]
    named = [run for run in rivals if run.name]
    own_words = context.echoed(own)
    rival_words = max((context.echoed(run) for run in rivals), default=0)
    preposition = context.word_before(own.first) in PREPOSITIONS
    solid = [run for run in rivals if not context.is_verbal(run)]
    stated = [
        run
        for run in context.runs
        if not run.fact
        and run.after_copula
        and run.echo_before
        and not context.holds_fact(run.sentence)
        and not context.is_denied(context.span(run))
    ]
    answered = [
        run
        for run in rivals
        if (run.after_copula and (run.echo_before or run.pronoun))
        or run.alone
        or (run.opens and run.echo_after)
    ]
    own_stated = own.after_copula and (own.echo_before or own.pronoun)
    return {
        "answered_before": float(any(run.sentence < own.sentence for run in answered)),
        "answered_before_else": float(
            any(run.sentence < own.sentence for run in answered) and not own_stated
        ),
        "answered_same": float(any(run.sentence == own.sentence for run in answered)),
        "answered_same_kind": float(any(run.name == own.name for run in answered)),
        "rival_other_kind": (1 - capital) * min(2.0, len(named)),
        "echo_more": later * float(own_words > rival_words),
        "echo_less": later * float(own_words < rival_words),
        "echo_difference": later * max(-3.0, min(3.0, own_words - rival_words)),
        "preposition": later * float(preposition),
        "preposition_rival": float(preposition and bool(claims)),
        "solid": min(len(solid), 4) / 2,
        "no_solid": float(not solid),
        "solid_claims": min(2.0, sum(run.after_copula or run.opens for run in solid)),
        "stated_else": float(bool(stated) and not own_stated),
        "stated_else_first": float(bool(stated) and not own_stated and not before),
        "parallel": float(
            any(context.frame(run.sentence) == context.frame(own.sentence) for run in earlier)
        ),
        "first": float(not before),
        "no_rival": float(not rivals),
        "rivals": min(len(rivals), 4) / 2,
        "rivals_same_clause": min(3.0, sum(run.clause == own.clause for run in rivals)),
        "rival_clause_before": min(3.0, sum(run.clause < own.clause for run in same)),
        "rivals_earlier": min(3.0, len(earlier)),
        "rival_sentences": min(3.0, len({run.sentence for run in earlier})),
        "rival_claims": min(2.0, len(claims)),
        "rival_copula": float(
            any(run.after_copula and (run.echo_before or run.pronoun) for run in rivals)
        ),
        "rival_subject": float(any(run.opens and run.echo_after for run in rivals)),
        "rival_alone": float(any(run.alone for run in rivals)),
        "rival_emphasised": float(any(run.emphasised for run in rivals)),
        "rival_named": capital * min(2.0, len(named)),
        "rival_unnamed_only": capital * float(bool(rivals) and not named),
        "rival_pronoun": float(any(run.pronoun and run.after_copula for run in rivals)),
        "emphasised": later * own.emphasised,
        "copula": later * own.after_copula,
        "copula_echo": later * float(own.after_copula and own.echo_before),
        "copula_pronoun": later * float(own.after_copula and own.pronoun),
        "opens": later * own.opens,
        "opens_echo": later * float(own.opens and own.echo_after),
        "alone": later * own.alone,
        "echo_before": later * own.echo_before,
        "echo_after": later * own.echo_after,
        "name": capital,
        "later_name": later * capital,
        "first_sentence": later * float(own.sentence == tokens[0].sentence),
        "negative": float(any(word in NEGATIVE for word in words_before)),
        "compound": float(first > own.first and not tokens[own.first].raw[0].isupper()),
        "compound_name": float(first > own.first and tokens[own.first].raw[0].isupper()),
        "followed": float(last < own.last),
        "explains": later * float(bool(EXPLANATION.search(context.question.lower()))),
        "undecided": float(bool(UNDECIDED.search(context.text.low[context.begin :]))),
        "denied_rival": float(len(before) > len(rivals) + sum(run.fact for run in before)),
        "repeated": float(any(run.fact for run in before)),
    }
