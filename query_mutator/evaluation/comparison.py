"""From measured questions to what they say: how the policy compares with simpler ways."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from query_mutator.evaluation.apart import FACTS, TERMS, apart, mean_part, part, parts_of
from query_mutator.evaluation.measuring import UNCHANGED, Measured, Tried
from query_mutator.evaluation.statistics import (
    FEWEST_SHOWN,
    ROUNDING,
    Difference,
    Numbers,
    paired_differences,
)

POLICY = "policy"
LAST_KEPT = "policy, last answer always kept"
RANDOM = "random operator"
BEST_OF_N = "best of {n}, picked without the reference"
ORACLE = "oracle"
DRAWS = 64

Rate = Callable[[Measured, Sequence[Tried]], Sequence[float]]
"""How good each of some answers to a question looks, told without the reference."""


@dataclass(frozen=True)
class Way:
    """One way of asking, over all questions: its mean score and what a question costs."""

    name: str
    score: float
    target_calls: float
    mutator_calls: float
    seconds: float
    policy_ahead: Difference | None = None
    """The policy's score minus this one's; None for the policy itself and for the ceiling."""
    facts: float | None = None
    wording: float | None = None
    """The means of these parts of the score; None where the objective tells no such part."""


@dataclass(frozen=True)
class CategoryGain:
    """The policy against the unchanged question within one category."""

    category: str
    questions: int
    unchanged: float
    policy: float
    difference: Difference


@dataclass(frozen=True)
class Findings:
    """All that an evaluation found."""

    questions: int
    ways: tuple[Way, ...]
    """Policy, the simple alternatives, the ceiling."""
    operators: tuple[Way, ...]
    best_single: str
    """The operator (or unchanged) with the best mean score on training questions."""
    training_questions: int
    categories: tuple[CategoryGain, ...]
    chosen: dict[str, float]
    """How often the policy ended with which operators."""
    score_and_length: float | None
    """Correlation of score and words among the answers to a question, at an equal share of key
    facts: far from 0, the objective pays for brevity or length. None where nothing varies."""
    facts_known: bool
    """Whether answers are scored by key facts; else the correlation is not given them."""
    kept_share: float | None = None
    """Of the questions whose last answer is another than their first, the share where one to a
    rewrite is kept. None where the last always is, or where there are no such questions."""
    apart: dict[str, Difference] = field(default_factory=dict)
    """The policy against the unchanged question in facts and in wording, where the objective
    tells them; the intervals hold together."""
    contenders: tuple[Way, ...] = ()
    """Adapters to compare, each asked alone; the other ways know nothing of them."""

    def against(self, name: str) -> Difference:
        """The policy's lead over one of the alternatives."""
        difference = next(way.policy_ahead for way in self.ways if way.name == name)
        assert difference is not None
        return difference


def compare(
    heldout: Sequence[Measured], training: Sequence[Measured], rate: Rate, *, seed: int = 0
) -> Findings:
    """Compares the policy with the alternatives on held-out questions.

    `training` are questions of the training split, to choose the best single operator on. The
    intervals of the alternatives hold together, as do those of the operators and those of the
    categories.
    """
    policy = [measured.policy for measured in heldout if measured.policy is not None]
    assert len(policy) == len(heldout)
    scores = np.array([tried.score for tried in policy])
    meanings = [measured.meaning for measured in heldout]
    names = [name for name in heldout[0].ways if name != UNCHANGED]
    single = best_single(training)
    # Rounded up: the policy must not win by asking more often.
    n = max(2, math.ceil(np.mean([tried.target_calls for tried in policy])))
    best_of = _best_of(heldout, n, rate, seed)
    alternatives = {
        UNCHANGED: _column(heldout, [UNCHANGED]),
        RANDOM: _column(heldout, names),
        f"best single: {single}": _column(heldout, [single]),
        BEST_OF_N.format(n=n): best_of,
    }
    if last_kept := with_last_kept(heldout):
        alternatives = {LAST_KEPT: _cells(last_kept), **alternatives}
    alone = {name: _column(heldout, [name]) for name in names}
    contending = {
        name: _cells([one.contenders[name] for one in heldout]) for name in heldout[0].contenders
    }
    ahead = _ahead(scores, alternatives, meanings, seed)
    chosen = Counter(" + ".join(tried.operators) or UNCHANGED for tried in policy)
    ways = [_way(POLICY, _cells(policy))]
    ways += [_way(name, column, ahead[name]) for name, column in alternatives.items()]
    ways.append(_way(ORACLE, _oracle(heldout)))
    return Findings(
        len(heldout),
        tuple(ways),
        _table(alone, scores, meanings, seed),
        single,
        len(training),
        _by_category(heldout, scores, seed),
        {name: count / len(policy) for name, count in chosen.most_common()},
        score_and_length([list(one.ways.values()) for one in heldout]),
        any(FACTS in tried.terms for one in heldout for tried in one.ways.values()),
        _kept_share(heldout) if last_kept else None,
        apart(gained_in_parts(heldout), meanings, seed=seed),
        _table(contending, scores, meanings, seed),
    )


def with_last_kept(heldout: Sequence[Measured]) -> list[Tried]:
    """What the policy's last answers would be; none where those are what it keeps."""
    found = [one.last_kept for one in heldout if one.last_kept is not None]
    return found if len(found) == len(heldout) else []


def _kept_share(heldout: Sequence[Measured]) -> float | None:
    kept = [
        one.policy.prompt != one.ways[UNCHANGED].prompt
        for one in heldout
        if one.policy is not None
        and one.last_kept is not None
        and one.last_kept.answer != one.ways[UNCHANGED].answer
    ]
    return float(np.mean(kept)) if kept else None


def gained_in_parts(heldout: Sequence[Measured]) -> dict[str, Numbers]:
    """What the policy adds to each part of the score of the question unchanged."""
    after = parts_of([one.policy for one in heldout if one.policy is not None])
    before = parts_of([one.ways[UNCHANGED] for one in heldout])
    return {name: after[name] - before[name] for name in TERMS}


def best_single(training: Sequence[Measured]) -> str:
    """The way with the best mean score, unchanged among them."""
    names = list(training[0].ways)
    means = {name: np.mean([measured.ways[name].score for measured in training]) for name in names}
    return max(names, key=lambda name: means[name])


def score_and_length(answers: Sequence[Sequence[Tried]]) -> float | None:
    """The correlation of score and words within questions, each with its answers.

    At an equal share of key facts where that is known. What is easy to answer, and answered
    briefly, says nothing of what the objective pays for: each question is its own measure.
    """
    if len(answers) < FEWEST_SHOWN:
        return None
    rows = []
    for tried in answers:
        cells = [
            (one.score, len(one.answer.split()), one.terms.get(FACTS, {}).get("value", 0.0))
            for one in tried
        ]
        rows.append(np.array(cells, float) - np.mean(cells, axis=0))
    scores, words, facts = np.concatenate(rows).T
    given = facts[:, None]
    left = [values - given @ np.linalg.lstsq(given, values)[0] for values in (scores, words)]
    if min(float(np.std(values)) for values in left) < ROUNDING:
        return None
    return float(np.corrcoef(*left)[0, 1])


_WORTH = 1 + len(TERMS)
"""So many columns of cells say what an answer is worth; the others, what it cost."""


def _cells(tried: Sequence[Tried]) -> Numbers:
    """Score, its parts, target calls, mutator calls and seconds: a row for each."""
    rows = [
        [
            *(one.score, *(part(one, name) for name in TERMS)),
            *(one.target_calls, one.mutator_calls, one.seconds),
        ]
        for one in tried
    ]
    return np.array(rows, float)


def _column(measured: Sequence[Measured], names: Sequence[str]) -> Numbers:
    """What a way drawn evenly from `names` is worth and costs, for each question."""
    return np.stack([_cells([one.ways[name] for name in names]).mean(0) for one in measured])


def _oracle(measured: Sequence[Measured]) -> Numbers:
    """The best of everything that was tried, which only the reference can tell."""
    rows = []
    for one in measured:
        cells = _cells([*one.ways.values(), *([one.policy] if one.policy else [])])
        # Worth as much as the best: but to know which that is, all have to be asked.
        rows.append([*cells[cells[:, 0].argmax(), :_WORTH], *cells[:, _WORTH:].sum(0)])
    return np.array(rows)


def _best_of(measured: Sequence[Measured], n: int, rate: Rate, seed: int) -> Numbers:
    """The unchanged question and n - 1 operators drawn at random, of which the best rated counts.

    For n = 2 the mean over all draws is taken, else over some.
    """
    generator = np.random.default_rng(seed)
    rows = []
    for one in measured:
        names = [UNCHANGED, *(name for name in one.ways if name != UNCHANGED)]
        tried = [one.ways[name] for name in names]
        rated, all_cells = np.asarray(rate(one, tried)), _cells(tried)
        operators = np.arange(1, len(names))
        few = min(n - 1, len(operators))
        draws = (
            operators[:, None]
            if few == 1
            else [generator.choice(operators, few, replace=False) for _ in range(DRAWS)]
        )
        cells = []
        for draw in draws:
            asked = np.array([0, *draw])
            best = asked[rated[asked].argmax()]
            cells.append([*all_cells[best, :_WORTH], *all_cells[asked, _WORTH:].sum(0)])
        rows.append(np.mean(cells, axis=0))
    return np.array(rows)


def _table(
    columns: dict[str, Numbers], scores: Numbers, meanings: Sequence[str], seed: int
) -> tuple[Way, ...]:
    """Ways whose intervals hold together."""
    ahead = _ahead(scores, columns, meanings, seed) if columns else {}
    return tuple(_way(name, column, ahead[name]) for name, column in columns.items())


def _ahead(
    scores: Numbers, columns: dict[str, Numbers], meanings: Sequence[str], seed: int
) -> dict[str, Difference]:
    family = {name: scores - column[:, 0] for name, column in columns.items()}
    return paired_differences(family, groups=meanings, seed=seed)


def _way(name: str, cells: Numbers, ahead: Difference | None = None) -> Way:
    score = float(cells[:, 0].mean())
    target_calls, mutator_calls, seconds = (float(value) for value in cells[:, _WORTH:].mean(0))
    parts = {name: mean_part(cells[:, place]) for place, name in enumerate(TERMS, 1)}
    return Way(name, score, target_calls, mutator_calls, seconds, ahead, **parts)


def _by_category(
    heldout: Sequence[Measured], scores: Numbers, seed: int
) -> tuple[CategoryGain, ...]:
    """The gain within each category; Bonferroni's correction, as their questions differ."""
    categories = sorted({measured.category for measured in heldout})
    level = 1 - 0.05 / len(categories)
    gains = []
    for category in categories:
        rows = [i for i, measured in enumerate(heldout) if measured.category == category]
        unchanged = np.array([heldout[i].ways[UNCHANGED].score for i in rows])
        difference = paired_differences(
            {category: scores[rows] - unchanged},
            groups=[heldout[i].meaning for i in rows],
            level=level,
            seed=seed,
        )[category]
        gains.append(
            CategoryGain(
                category,
                len(rows),
                float(unchanged.mean()),
                float(scores[rows].mean()),
                difference,
            )
        )
    return tuple(sorted(gains, key=lambda gain: -gain.difference.mean))
