"""Suggested edges: no others do better."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batching.analyze import Goal, suggest, suggest_edges
from batching.core import BucketSpec
from benchmarks import bucket_edges as benchmark
from query_mutator.base.errors import UserError

LENGTHS = st.lists(st.integers(1, 11), min_size=1, max_size=25)


def cost(lengths: list[int], spec: BucketSpec, goal: Goal) -> int:
    """What a goal is to make small, counted bucket by bucket."""
    ends = [*spec.edges, spec.overflow_max]
    counts = Counter(ends[bisect_left(ends, length)] for length in lengths)
    if goal is Goal.BALANCE:
        return sum(count**2 for count in counts.values())
    return sum(count * end ** (2 if goal is Goal.MEMORY else 1) for end, count in counts.items())


@given(LENGTHS, st.integers(1, 3), st.sampled_from(Goal), st.none() | st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_no_edges_at_all_do_better_than_the_suggested_ones(
    lengths: list[int], num_edges: int, goal: Goal, room: int | None
) -> None:
    last = max(lengths) + (room or 0)
    spec = suggest_edges(lengths, num_edges, goal, overflow_max=None if room is None else last)
    assert spec.overflow_max == last
    assert len(spec.edges) <= num_edges
    least = min(
        cost(lengths, BucketSpec(edges, last), goal)
        for count in range(num_edges + 1)
        for edges in combinations(range(1, last), count)
    )
    assert cost(lengths, spec, goal) == least


@given(LENGTHS, st.integers(1, 3), st.integers(2, 5))
@settings(max_examples=60, deadline=None)
def test_edges_can_be_kept_to_multiples(lengths: list[int], num_edges: int, step: int) -> None:
    last = -(-max(lengths) // step) * step
    spec = suggest_edges(lengths, num_edges, multiple_of=step)
    assert all(edge % step == 0 for edge in (*spec.edges, spec.overflow_max))
    least = min(
        cost(lengths, BucketSpec(edges, last), Goal.WASTE)
        for count in range(num_edges + 1)
        for edges in combinations(range(step, last, step), count)
    )
    assert cost(lengths, spec, Goal.WASTE) == least


@pytest.mark.parametrize("goal", list(Goal))
def test_more_edges_never_do_worse_on_many_lengths(goal: Goal) -> None:
    lengths = (np.random.default_rng(0).lognormal(5, 1, 20_000).astype(int) + 1).tolist()
    costs = [
        cost(lengths, suggest_edges(lengths, count, goal), goal) for count in (1, 2, 4, 8, 16, 64)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]


def test_the_known_optimum_is_found_on_many_lengths() -> None:
    # Lengths spread evenly: evenly spread edges are best, and any other is told by its cost.
    lengths = np.repeat(np.arange(1, 1001), 7)
    assert suggest_edges(lengths, 3).edges == (250, 500, 750)
    assert suggest_edges(lengths, 9, Goal.BALANCE).edges == tuple(range(100, 1000, 100))


def test_few_distinct_lengths_need_few_edges() -> None:
    assert suggest_edges([5, 5, 5], 4) == BucketSpec((), 5)
    assert suggest_edges([5, 9], 4) == BucketSpec((5,), 9)
    assert suggest_edges([5, 9], 4, overflow_max=20) == BucketSpec((5, 9), 20)


def test_what_is_too_long_or_empty_does_not_count() -> None:
    assert suggest_edges([0, 4, 8, 8, 100, 200], 1, overflow_max=20).edges == (8,)
    with pytest.raises(UserError, match="no samples of at most 3 tokens"):
        suggest_edges([4, 5], 1, overflow_max=3)
    with pytest.raises(UserError, match="there are no samples to"):
        suggest_edges([], 1)
    with pytest.raises(ValueError, match="at least 1"):
        suggest_edges([1], 0)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("waste", "places that hold tokens: 100 %, with 4 (at most 100): "),
        ("balance", "samples in the fullest bucket: 50.0 %, with 4 (at most 100): 100 %"),
        ("memory", "attention memory that holds tokens: 100 %, with 4 (at most 100): "),
    ],
)
def test_a_suggestion_tells_what_it_gains(goal: str, words: str) -> None:
    made = suggest([10, 10, 100, 100], 1, goal, in_use=BucketSpec((4,), 100))
    assert made.spec == BucketSpec((10,), 100)
    text = made.to_text()
    assert f"best edges for {goal}: 10 (at most 100)" in text
    assert words in text
    stored = made.to_dict()
    assert (stored["goal"], stored["edges"], stored["overflow_max"]) == (goal, [10], 100)
    assert stored["in_use"]["efficiency"] < stored["suggested"]["efficiency"] == 1


def test_the_benchmark_tells_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.run(["--samples", "1000", "--edges", "3"]) == 0
    told = capsys.readouterr().out
    assert all(f"{goal}: " in told for goal in Goal)
