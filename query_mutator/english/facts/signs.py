"""What tells that a mention of a fact is the answer that is given, not something else."""

from __future__ import annotations

from collections.abc import Sequence

from query_mutator.english.facts.context import Context
from query_mutator.english.facts.runs import Run, Span
from query_mutator.english.words import words_in

PREPOSITIONS = words_in(
    "by of with to into in from on for over at through after before under about"
)


def signs(context: Context, own: Run, rivals: Sequence[Run], span: Span) -> dict[str, float]:
    """What speaks for and against a mention being the answer, by name.

    `own` is what the mention belongs to, `rivals` what the answer names before it.
    """
    first, last = context.token_range(span)
    begins = context.tokens[own.first].raw
    later = float(context.runs.index(own) > 0)
    capital = float(own.name)
    same = [run for run in rivals if run.sentence == own.sentence]
    claims = [run for run in rivals if run.after_copula or run.opens]
    return {
        "first": 1 - later,
        "no_rival": float(not rivals),
        "rivals": min(len(rivals), 4) / 2,
        "rivals_same_clause": min(3.0, sum(run.clause == own.clause for run in rivals)),
        "rivals_clause_before": min(3.0, sum(run.clause < own.clause for run in same)),
        "rival_sentences": min(
            3.0, len({run.sentence for run in rivals if run.sentence < own.sentence})
        ),
        "rival_claims": min(2.0, len(claims)),
        "rival_solid_claims": min(2.0, sum(not context.is_verbal(run) for run in claims)),
        "rivals_describing": min(2.0, sum(context.describes(run, own) for run in rivals)),
        "only_described": float(
            bool(rivals) and all(context.describes(run, own) for run in rivals)
        ),
        "rival_stated": float(any(run.stated for run in rivals)),
        "rival_emphasised": float(any(run.emphasised for run in rivals)),
        "rivals_no_names": capital * float(bool(rivals) and not any(run.name for run in rivals)),
        "preposition": later * float(context.word_before(own.first) in PREPOSITIONS),
        "emphasised": later * own.emphasised,
        "stated": later * own.stated,
        "opens": later * own.opens,
        "opens_echo": later * float(own.opens and own.echo_after),
        "alone": later * own.alone,
        "echo_after": later * own.echo_after,
        "name": capital,
        "later_name": later * capital,
        "compound": float(first > own.first and not begins[0].isupper()),
        "compound_name": float(first > own.first and begins[0].isupper()),
        "followed": float(last < own.last),
    }
