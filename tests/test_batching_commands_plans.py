"""`python -m batching plan` and `generate`: plans, shards and batches from the command line."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from batching.commands import plans
from batching.generation import BatchReader, LengthCache
from batching.planning import BatchingConfig, BatchPlan
from tests.batching_commands import (
    NUM_TEXTS,
    NUM_TOKENS,
    ROOT,
    TEXTS,
    as_json,
    files,
    make_plan,
    measure,
    run,
    signalled,
)


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("examples").symlink_to(ROOT / "examples")


def test_the_defaults_in_the_help_are_those_of_the_plans() -> None:
    config = BatchingConfig()
    assert config.token_budget == plans.DEFAULT_BUDGET
    assert (config.bucket_edges, config.overflow_max) == (
        plans.DEFAULT_EDGES,
        plans.DEFAULT_LONGEST,
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--predictable"], {"pad_policy": "pad_to_bucket", "shuffle": False, "packing": None}),
        (["--throughput"], {"packing": {"mode": "best_fit", "max_length": 2048}}),
        (["--throughput", "--pack", "greedy"], {"packing": {"mode": "greedy", "max_length": 2048}}),
        (["--pack", "first_fit", "--overflow-max", "4000"], {"overflow_max": 4000}),
        (["--bucket-edges", "100,3000"], {"bucket_edges": [100, 3000], "overflow_max": 6000}),
        (["--bucket-edges", "none"], {"bucket_edges": []}),
        (["--seed", "7", "--drop-last"], {"seed": 7, "drop_last": True}),
        (["-b", "1024", "--on-overflow", "skip"], {"token_budget": 1024, "on_overflow": "skip"}),
    ],
)
def test_the_flags_of_a_plan_are_its_settings(flags: list[str], expected: dict[str, Any]) -> None:
    config = make_plan(*flags).meta.config.to_dict()
    assert {name: config[name] for name in expected} == expected


def test_a_plan_is_written_once_and_replaced_only_when_asked_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_plan(epochs=2)
    before = files()
    make_plan(epochs=2)
    assert "is this plan already" in capsys.readouterr().out
    words = ["plan", "build", "-l", "lengths.jsonl", "-b", "2048", "-o", "plan"]
    assert run(*words) == 2
    assert "holds another plan; choose another -o, or replace it" in capsys.readouterr().err
    assert files() == before
    assert run(*words, "--overwrite") == 0
    assert BatchPlan.load("plan").meta.config.token_budget == 2048


@pytest.mark.parametrize("policy", ["truncate", "split", "skip"])
def test_samples_that_are_too_long_are_counted_on_the_terminal(
    capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    plan = make_plan("-b", "1024", "--on-overflow", policy)
    long = sum(length > 1024 for length in LengthCache.open("lengths.jsonl").lengths().values())
    done = {"truncate": "truncated", "split": "split", "skip": "skipped as too long"}[policy]
    assert f"{long} samples {done}" in capsys.readouterr().err
    assert run("plan", "info", "-p", "plan", "--json") == 0
    told = as_json(capsys)
    counts = told["epochs"][0]["counts"]
    assert counts[{"truncate": "truncated", "skip": "skipped"}.get(policy, policy)] == long
    tokens = told["metrics"]["real_tokens"] + counts["lost_tokens"]
    assert tokens == NUM_TOKENS, "every token is in a batch or counted"
    assert told["fingerprint"] == plan.fingerprint


def test_a_plan_matches_its_lengths_and_a_difference_is_exit_code_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_plan("--throughput", epochs=2)
    verify = ["plan", "verify", "-p", "plan", "-l"]
    assert run(*verify, "lengths.jsonl") == 0
    assert "plan: matches lengths.jsonl" in capsys.readouterr().out
    with LengthCache.open("lengths.jsonl") as cache:
        cache.add("geo-001", 999)
    assert run(*verify, "lengths.jsonl") == 1
    assert "built from" in capsys.readouterr().out
    rows = TEXTS.read_text().splitlines(keepends=True)
    Path("fewer.jsonl").write_text("".join(rows[:100]))
    measure("fewer_lengths.jsonl", Path("fewer.jsonl"))
    capsys.readouterr()
    assert run(*verify, "fewer_lengths.jsonl", "--json") == 1
    told = as_json(capsys)
    assert not told["matches"]
    assert "another data set" in told["differences"]["plan"][0]
    assert "built from 280 samples, and these are 100" in told["differences"]["plan"]


def test_a_plan_that_was_changed_by_hand_does_not_match(capsys: pytest.CaptureFixture[str]) -> None:
    make_plan()
    epoch = Path("plan/epoch_0.jsonl")
    lines = epoch.read_text().splitlines(keepends=True)
    epoch.write_text("".join([lines[1], lines[0], *lines[2:]]))
    assert run("plan", "verify", "-p", "plan", "-l", "lengths.jsonl") == 1
    assert "is damaged" in capsys.readouterr().out
    assert run("plan", "info", "-p", "plan") == 2


@pytest.mark.parametrize("remainder", ["split", "repeat", "drop"])
def test_shards_have_as_many_steps_and_match_their_lengths(
    capsys: pytest.CaptureFixture[str], remainder: str
) -> None:
    plan = make_plan(epochs=2)
    shard = ["plan", "shard", "-p", "plan", "-w", "7", "-o", "shards", "--remainder", remainder]
    assert plan.num_batches % 7, "something has to be evened out"
    assert run(*shard) == 0
    ranks = [BatchPlan.load(f"shards/rank_{rank}") for rank in range(7)]
    assert len({tuple(map(len, rank.epochs)) for rank in ranks}) == 1
    seen = [name for rank in ranks for batch in rank.iter_epoch(0) for name in batch.sample_ids]
    assert (len(seen) == len(set(seen)) == NUM_TEXTS) is (remainder == "split")
    assert run("plan", "verify", "-p", "shards", "-l", "lengths.jsonl") == 0
    assert capsys.readouterr().out.count("matches") == 7
    before = files()
    assert run(*shard) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert files() == before
    assert run(*shard, "--overwrite", "-w", "2") == 0
    assert sorted(path.name for path in Path("shards").iterdir()) == ["rank_0", "rank_1"]


def test_rows_may_be_as_long_as_a_length_unless_they_are_packed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    longest = str(2**40)
    assert make_plan("--overflow-max", longest).meta.config.overflow_max == 2**40
    words = ["plan", "build", "-l", "lengths.jsonl", "-o", "other", "--throughput"]
    assert run(*words, "--overflow-max", longest, "-b", str(2**31)) == 2
    assert "packed rows hold 16,777,216 tokens at most" in capsys.readouterr().err


def test_killed_shards_leave_none() -> None:
    make_plan()
    words = ["plan", "shard", "-p", "plan", "-w", "4", "-o", "shards"]
    assert signalled("os.rename", 1, signal.SIGKILL, *words).returncode == -signal.SIGKILL
    assert not Path("shards").exists()
    assert run(*words) == 0
    assert len(list(Path("shards").iterdir())) == 4


def test_shards_that_are_replaced_are_never_gone(capsys: pytest.CaptureFixture[str]) -> None:
    make_plan()
    words = ["plan", "shard", "-p", "plan", "-o", "shards", "-w"]
    assert run(*words, "3") == 0
    whole = files()
    replace_them = [*words, "2", "--overwrite"]
    assert signalled("os.rename", 2, signal.SIGKILL, *replace_them).returncode == -signal.SIGKILL
    capsys.readouterr()
    assert run("plan", "info", "-p", "shards/rank_0") == 2
    told = capsys.readouterr().err
    assert "was interrupted; what was there before is whole" in told
    assert os.system(told.splitlines()[1].partition(": ")[2]) == 0
    assert {name: files()[name] for name in whole} == whole
    assert run(*replace_them) == 0
    assert not list(Path().glob(".shards*"))


def test_batches_hold_every_token_of_the_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    plan = make_plan("--throughput", epochs=2)
    words = ["generate", "-p", "plan", "-d", TEXTS, "-t", "bytes", "-o", "batches"]
    assert run(*words) == 0
    reader = BatchReader("batches", plan)
    for epoch in range(2):
        assert sum(batch.num_tokens for batch in reader.iter_epoch(epoch)) == NUM_TOKENS
    before = files()
    capsys.readouterr()
    assert run(*words) == 0
    assert f"all {plan.num_batches} batches are there already" in capsys.readouterr().out
    assert files() == before
    Path("batches/epoch_1/batch_000003.npz").write_bytes(b"spoilt")
    assert run(*words) == 0
    assert "(1 written)" in capsys.readouterr().out
    assert files() == before
    make_plan("--predictable", output="other")
    assert run("generate", "-p", "other", *words[3:]) == 2
    assert "of another plan" in capsys.readouterr().err
    assert {name: files()[name] for name in before} == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_interrupted_batches_are_kept_and_gone_on_with(number: signal.Signals, code: int) -> None:
    make_plan("--throughput")
    words = ["generate", "-p", "plan", "-d", TEXTS, "-t", "bytes", "-o"]
    assert run(*words, "uninterrupted") == 0
    stopped = signalled("os.rename", 9, number, *words, "batches")
    assert stopped.returncode == code
    if code == 130:
        assert stopped.stderr.startswith("interrupted; ")
        assert stopped.stderr.endswith(" of 25 batches are kept: the same command goes on\n")
    kept = {path.name: path.stat().st_mtime_ns for path in Path("batches").rglob("*.npz")}
    assert 7 <= len(kept) < 25
    assert run(*words, "batches", "--resume") == 0
    for path in Path("uninterrupted").rglob("*.npz"):
        again = Path("batches") / path.relative_to("uninterrupted")
        assert again.read_bytes() == path.read_bytes()
        assert again.stat().st_mtime_ns == kept.get(path.name, again.stat().st_mtime_ns)
    assert Path("batches/manifest.json").read_bytes() == (
        Path("uninterrupted/manifest.json").read_bytes()
    )


def test_batches_are_refused_where_data_tokenizer_or_lengths_are_not_the_plans(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_plan()
    rows = TEXTS.read_text().splitlines(keepends=True)
    Path("other.jsonl").write_text("".join([*rows[1:], rows[0]]))
    generate = ["generate", "-p", "plan", "-o", "batches", "-d"]
    assert run(*generate, "other.jsonl", "-t", "bytes") == 1
    assert "the data set is not the one" in capsys.readouterr().err
    assert run(*generate, TEXTS, "-t", "embedded") == 1
    assert "the tokenizer is not the one" in capsys.readouterr().err
    whole = Path("lengths.jsonl").read_bytes().splitlines(keepends=True)
    Path("lengths.jsonl").write_bytes(b"".join(whole[:101]))
    make_plan("--overwrite")
    capsys.readouterr()
    assert run(*generate, TEXTS, "-t", "bytes") == 1
    assert "built from 100 samples, and the data set has 280" in capsys.readouterr().err
    changed = whole[1].replace(b'"length": ', b'"length": 1')
    Path("lengths.jsonl").write_bytes(b"".join([whole[0], changed, *whole[2:]]))
    make_plan("--overwrite", "--on-overflow", "truncate")
    capsys.readouterr()
    assert run(*generate, TEXTS, "-t", "bytes") == 1
    assert "other ids, lengths or another order" in capsys.readouterr().err
    assert not Path("batches").exists()
