"""Length histograms, the efficiency of buckets, reports, and their pictures."""

from __future__ import annotations

import doctest
import importlib
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import image

from batching.analyze import (
    BucketEfficiency,
    LengthHistogram,
    draw_buckets,
    draw_histogram,
    draw_report,
    draw_suggestion,
    efficiency_report,
    suggest,
)
from batching.core import BucketSpec, BucketStats
from query_mutator.base.errors import UserError
from tests.nightly import examples

LENGTHS = st.lists(st.integers(0, 5000), min_size=1, max_size=60)


def chat_like(count: int = 3000) -> list[int]:
    lengths = np.random.default_rng(0).lognormal(5.39, 0.925, count).astype(int)
    return [int(length) for length in np.clip(lengths, 1, 2048)]


@given(LENGTHS, st.integers(2, 40))
def test_every_sample_is_in_the_bin_of_its_length(lengths: list[int], num_bins: int) -> None:
    histogram = LengthHistogram.of(lengths, num_bins)
    assert len(histogram.counts) <= num_bins + 1
    for (low, high), count in zip(pairwise(histogram.edges), histogram.counts, strict=True):
        assert low < high
        assert count == sum(low < length <= high for length in lengths)
    assert sum(histogram.counts) == histogram.num_samples == len(lengths)
    assert histogram.num_tokens == sum(lengths)


@given(LENGTHS)
def test_a_percentile_is_a_length_that_so_many_do_not_exceed(lengths: list[int]) -> None:
    for name, length in LengthHistogram.of(lengths).percentiles.items():
        share = int(name[1:]) / 100
        assert length in lengths
        assert sum(one <= length for one in lengths) >= share * len(lengths) - 1e-9
        assert sum(one < length for one in lengths) < share * len(lengths)


def test_a_histogram_is_text_and_json() -> None:
    histogram = LengthHistogram.of([10] * 30 + [20] * 60 + [1000] * 10, 4)
    text = histogram.to_text(bar_width=12)
    assert text.startswith(
        "100 samples, 11,500 tokens\nlengths from 10 to 1,000 tokens, mean 115.0"
    )
    assert "p50 20   p75 20   p90 20   p95 1,000" in text
    assert text.splitlines()[4].endswith("████████████ 90  90.0 %")
    stored = json.loads(json.dumps(histogram.to_dict()))
    assert stored["percentiles"]["p99"] == 1000
    assert stored["counts"] == list(histogram.counts)


def test_no_lengths_are_told() -> None:
    with pytest.raises(UserError, match="there are no lengths"):
        LengthHistogram.of([])
    with pytest.raises(UserError, match="there are no lengths"):
        efficiency_report([], 100)


@given(LENGTHS, st.lists(st.integers(1, 3000), unique=True, max_size=6).map(sorted))
def test_the_efficiency_is_that_of_padding_each_sample_by_hand(
    lengths: list[int], edges: list[int]
) -> None:
    spec = BucketSpec(tuple(edges), 3001)
    found = BucketEfficiency.of(lengths, spec, token_budget=6000)
    inside = [length for length in lengths if 1 <= length <= 3001]
    padded = [next(end for end in (*edges, 3001) if length <= end) for length in inside]
    assert found.num_samples == len(inside)
    assert (found.num_tokens, found.padded_tokens) == (sum(inside), sum(padded))
    assert (found.too_long, found.too_short) == (
        sum(length > 3001 for length in lengths),
        lengths.count(0),
    )
    stats = BucketStats.of(lengths, spec)
    assert found.efficiency == pytest.approx(stats.overall_efficiency)
    assert [bucket.num_samples for bucket in found.buckets] == list(stats.counts)
    assert all(bucket.rows_per_batch == 6000 // bucket.high for bucket in found.buckets)
    if inside:
        squares = sum(one**2 for one in inside) / sum(one**2 for one in padded)
        assert found.attention_efficiency == pytest.approx(squares)


def test_the_efficiency_is_text_and_json() -> None:
    found = BucketEfficiency.of([5, 10, 20, 500, 0], BucketSpec((10, 15), 40), 80)
    assert found.to_text().splitlines() == [
        "bucket    samples   share  tokens  padding  efficiency  rows a batch",
        "1 to 10         2  66.7 %      15        5      75.0 %             8",
        "11 to 15        0   0.0 %       0        0           –             5",
        "16 to 40        1  33.3 %      20       20      50.0 %             2",
        "all             3              35       25      58.3 %",
        "in no bucket: 1 sample longer than 40 tokens",
        "in no bucket: 1 sample shorter than 1",
    ]
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["efficiency"] == pytest.approx(35 / 60)
    assert stored["buckets"][0]["num_tokens"] == 15


def test_a_report_compares_the_ways_and_takes_the_simplest_good_one() -> None:
    report = efficiency_report(chat_like(), 16_384)
    ways = {way.key: way for way in report.ways}
    assert list(ways) == ["pad_all", "buckets", "optimal_buckets", "sorted", "packing"]
    shares = [way.efficiency for way in report.ways]
    assert shares == sorted(shares)
    assert ways["pad_all"].efficiency == pytest.approx(sum(chat_like()) / (3000 * 2048), rel=0.01)
    assert ways["packing"].efficiency > 0.99
    assert report.best is ways["packing"]
    assert report.recommendation.startswith("Pack several samples into each row (throughput)")
    assert report.recommendation.count(". ") == 0, "one sentence"
    text = report.to_text()
    assert text.endswith(report.recommendation)
    assert all(way.name in text for way in report.ways)
    assert json.loads(json.dumps(report.to_dict()))["best"] == "packing"


@pytest.mark.parametrize(
    ("lengths", "edges", "best"),
    [
        ([2048] * 64, (128,), "pad_all"),
        ([128] * 640 + [2048] * 8, (128,), "buckets"),
        ([100] * 640 + [200] * 80, (64, 128), "optimal_buckets"),
    ],
)
def test_the_recommendation_follows_the_lengths(
    lengths: list[int], edges: tuple[int, ...], best: str
) -> None:
    report = efficiency_report(lengths, 8192, BucketSpec(edges, 2048))
    assert report.best.key == best
    assert report.recommendation.startswith(report.best.advice)


def test_samples_that_are_too_long_are_told_in_the_report() -> None:
    report = efficiency_report([10, 500, 600], 400, BucketSpec((64,), 512))
    assert (report.truncated, report.num_tokens) == (2, 810)
    assert "2 samples too long for a row, counted as cut off" in report.to_text()


@given(LENGTHS, st.integers(1, 6000))
@examples(30)
def test_any_lengths_can_be_reported_on(lengths: list[int], budget: int) -> None:
    if max(lengths) > 0:
        report = efficiency_report(lengths, budget)
        assert all(0 < way.efficiency <= 1 for way in report.ways)
        assert report.to_text()


@pytest.mark.parametrize("lengths", [chat_like(300), [7]])
def test_everything_can_be_drawn(tmp_path: Path, lengths: list[int]) -> None:
    histogram = LengthHistogram.of(lengths)
    suggestion = suggest(lengths, 8)
    drawn = [
        draw_histogram(histogram, tmp_path / "pictures" / "histogram.png"),
        draw_buckets(suggestion.suggested, tmp_path / "buckets.png"),
        draw_suggestion(suggestion, histogram, tmp_path / "suggestion.png"),
        draw_report(efficiency_report(lengths, 4096), tmp_path / "report.png"),
    ]
    for path in drawn:
        picture = image.imread(path)
        assert picture.shape[1] >= 1350
        assert picture.std() > 0.01, "not blank"


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write the picture"):
        draw_histogram(LengthHistogram.of([5, 6]), tmp_path / "file" / "a.png")


@pytest.mark.parametrize("name", ["edges", "suggestion", "text"])
def test_the_examples_in_docstrings_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(f"batching.analyze.{name}"))
    assert results.attempted
    assert not results.failed
