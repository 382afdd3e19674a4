"""The packing benchmark: what it measures, what it says, and what it does without its peers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from batching import PackingMode
from benchmarks import packing


def test_lengths_are_drawn_as_the_table_says() -> None:
    lengths = packing.lognormal_lengths(100_000)

    assert np.median(lengths) == pytest.approx(packing.MEDIAN, rel=0.02)
    # A few in a hundred are cut at the capacity, which takes a little off the mean.
    assert lengths.mean() == pytest.approx(packing.MEAN, rel=0.03)
    assert 1 <= lengths.min() <= lengths.max() == packing.CAPACITY


@pytest.mark.slow
def test_ours_needs_no_more_rows_than_its_peers_on_the_same_lengths() -> None:
    pytest.importorskip("trl")
    pytest.importorskip("axolotl")
    lengths = packing.lognormal_lengths(3000)
    assigned, packed = (
        {one.name: one.num_rows for one in packing.compare(work, lengths, repeats=1)}
        for work in (packing.WORKS[packing.ASSIGNMENT], packing.WORKS[packing.WHOLE])
    )

    assert (
        assigned["ours, best fit"] < assigned["axolotl, first fit"] == assigned["ours, first fit"]
    )
    assert packed["ours"] <= packed["TRL, best fit decreasing"]


def test_a_peer_that_is_missing_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    absent: packing.Peers = {"a peer": (("no_such_package",), packing.axolotl_packing)}

    results = packing.compare(
        packing.Work(packing.our_assignment, absent), np.array([5, 6]), repeats=1
    )

    assert len(results) == len(PackingMode)
    assert capsys.readouterr().out == (
        "a peer: not compared, no_such_package is not installed (make dev)\n"
    )


def test_the_command_packs_the_lengths_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packing, "MANY", 1000)
    file = tmp_path / "lengths.json"
    file.write_text(json.dumps([2048, 1024, 1024, 1]))

    code = packing.main(["--lengths", str(file), "--count", "100", "--repeats", "1", "--no-peers"])

    lines = capsys.readouterr().out.splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith(str(file))) :]
    assert code == 0
    assert "4 lengths, 4,097 tokens, rows of 2048, at least 3 of them" in table[0]
    assert table[1] == "assignment alone"
    assert table[3].split()[:5] == ["ours,", "best", "fit", "3", "66.683%"]
    whole = table[table.index("whole work, from token arrays to packed arrays") :]
    assert whole[2].split()[:3] == ["ours", "3", "66.683%"]
    assert any("one epoch planned, packed" in line for line in lines)


@pytest.mark.parametrize("content", ["{", "[]", "[0]", "[4096]", '["a"]', "[1.5]", "[[1]]"])
def test_a_file_that_holds_no_lengths_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file = tmp_path / "lengths.json"
    file.write_text(content)

    assert packing.main(["--lengths", str(file), "--count", "10"]) == 2
    assert capsys.readouterr().err.startswith(f"error: lengths {file} ")
