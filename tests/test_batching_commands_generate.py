"""`python -m batching generate`: what is told of the data, and of which data the batches are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batching.planning import BatchingConfig, BatchPlanBuilder
from tests.batching_commands import files, measure, run


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def generate(dataset: str) -> int:
    return run("generate", "-p", "plan", "-d", dataset, "-t", "bytes", "-o", "batches")


@pytest.mark.parametrize(
    ("policy", "told"), [("truncate", "2 of the 3 rows"), ("split", "4 of the 7 rows")]
)
def test_rows_from_which_nothing_is_learned_are_told(
    capsys: pytest.CaptureFixture[str], policy: str, told: str
) -> None:
    rows = [("p" * 16, "abc"), ("q" * 16, "def"), ("r", "s")]
    lines = [json.dumps({"prompt": prompt, "completion": text}) for prompt, text in rows]
    Path("texts.jsonl").write_text("\n".join(lines))
    measure(texts=Path("texts.jsonl"))
    limits = ["--bucket-edges", "4", "--overflow-max", "8", "--on-overflow", policy]
    assert run("plan", "build", "-l", "lengths.jsonl", "-b", "64", *limits, "-o", "plan") == 0
    capsys.readouterr()
    assert generate("texts.jsonl") == 0
    assert f"warning: {told} written have no token that counts" in capsys.readouterr().err


def test_batches_of_other_texts_of_the_same_lengths_are_not_taken_for_these(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("texts.txt").write_text("one\nfour\n")
    Path("others.txt").write_text("two\nfive\n")
    lengths = {"line-1": 4, "line-2": 5}
    BatchPlanBuilder(lengths, BatchingConfig.predictable(64)).build(1).save("plan")
    assert generate("texts.txt") == 0
    before = files()
    assert generate("others.txt") == 2
    assert "was written from other data" in capsys.readouterr().err
    assert generate("texts.txt") == 0
    assert "(0 written)" in capsys.readouterr().out
    assert files() == before
