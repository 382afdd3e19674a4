"""What a rewriter learns from: shipped pairs, files, runs, any data, and what comes online."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batching import load_tokenizer
from batching.streaming.puzzle_server import PuzzleServer
from query_mutator import cli
from query_mutator.base.adapter_files import PEFT_DIRECTORY, PEFT_WEIGHTS
from query_mutator.base.errors import UserError
from query_mutator.base.locks import LOCK, only_writer
from query_mutator.data import load_questions
from query_mutator.models.encoders import load_encoder
from query_mutator.runs.directory import CONFIG, SUMMARY, TRANSITIONS
from query_mutator.tuning.online import FollowedRun, is_written_to
from query_mutator.tuning.pair_files import read_pairs, written_pairs
from query_mutator.tuning.pairs import (
    Pair,
    generated_pairs,
    shipped_pairs,
    split_pairs,
    with_kept,
)
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.run_pairs import gain_pairs, pairs_of_runs
from query_mutator.tuning.validation import MOST_REWRITES, looked_at
from tests.killable import DEADLINE_S
from tests.tiny_models import make_llama
from train_mutator_lm import main

ROWS = [
    {"instruction": f"Say {word} {times}.", "response": " ".join([f"{word.title()}!"] * times)}
    for word in ("peace", "bread", "water", "light", "stone", "river", "cloud", "grass")
    for times in (1, 2, 3)
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_llama(tmp_path_factory.mktemp("llama")))


def write_rows(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def test_shipped_pairs_are_of_training_questions_alone() -> None:
    heldout = {q.question for q in load_questions() if q.split == "heldout"}
    pairs = shipped_pairs()
    assert len(pairs) > 1000
    assert not heldout & {text for pair in pairs for text in (pair.question, pair.rewrite)}
    clear = {q.question for q in load_questions() if q.columns["style"] == "clear"}
    assert not any(pair.question in clear for pair in pairs)


def test_a_share_of_pairs_teaches_to_leave_a_clear_question_alone() -> None:
    pairs = with_kept([Pair(f"wat {n}", f"What is {n}?") for n in range(80)], 0.2, Random(0))
    assert sum(pair.is_kept for pair in pairs) == 20
    assert len(pairs) == 100
    assert with_kept(pairs, 0.2, Random(0)) == pairs
    assert with_kept(pairs[:80], 0.0, Random(0)) == pairs[:80]


def test_generated_variants_differ_by_seed_and_keep_what_is_meant() -> None:
    clear = [Pair("capital peru", "What is the capital of Peru?", category="geography")]
    made = generated_pairs(clear, 3, seed=0)
    assert len(made) == 3
    assert {pair.rewrite for pair in made} == {"What is the capital of Peru?"}
    assert generated_pairs(clear, 3, seed=0) == made
    assert generated_pairs(clear, 3, seed=1) != made


def test_pairs_of_all_kinds_are_looked_at_and_always_the_same() -> None:
    pairs = [Pair(f"q{n}", f"Q{n}?") for n in range(400)]
    some = looked_at(pairs, seed=0)
    assert len(some) == MOST_REWRITES
    assert some != pairs[:MOST_REWRITES]
    assert any(pair in pairs[200:] for pair in some)
    assert some == looked_at(pairs, seed=0) != looked_at(pairs, seed=1)
    assert len(looked_at(pairs[:3], seed=0)) == 3


def test_no_meaning_is_trained_on_and_validated_with() -> None:
    pairs = [Pair(f"q{n}", f"Q{n // 3}?") for n in range(90)]
    training, held = split_pairs(pairs, 0.2, Random(0))
    assert len(held) == 18
    assert not {pair.rewrite for pair in training} & {pair.rewrite for pair in held}


def test_pairs_that_share_a_wording_or_a_meaning_are_on_one_side() -> None:
    shipped = [Pair(f"wat {n}", f"What is {n}?", meaning=f"what {n}") for n in range(40)]
    written = [Pair(f"pls {n}", f"what  IS {n}?") for n in range(40)]
    rewrites = [Pair(f"wat {n}", f"Which one is {n}?") for n in range(40)]
    by_meaning = [Pair(f"{n}??", f"Tell me of {n}.", meaning=f"what {n}") for n in range(40)]
    pairs = [*by_meaning, *rewrites, *written, *shipped]
    training, held = split_pairs(pairs, 0.25, Random(0))
    assert (len(training), len(held)) == (120, 40)
    about = [{pair.rewrite.split()[-1].strip("?.") for pair in side} for side in (training, held)]
    assert not about[0] & about[1]


@pytest.mark.parametrize(
    "names", [("typed", "meant"), ("question", "rewrite"), ("prompt", "completion")]
)
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_pairs_are_read_from_files(tmp_path: Path, names: tuple[str, str], ending: str) -> None:
    file = tmp_path / f"pairs.{ending}"
    columns = {names[0]: ["wat is it", "who dat"], names[1]: ["What is it?", "Who is that?"]}
    if ending == "parquet":
        pq.write_table(pa.table(columns), file)
    else:
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
        lines = [json.dumps(row) for row in rows]
        if ending == "csv":
            lines = [",".join(columns), *(",".join(row.values()) for row in rows)]
        file.write_text("\n".join(lines) + "\n")
    assert read_pairs(file) == [Pair("wat is it", "What is it?"), Pair("who dat", "Who is that?")]


def test_rows_that_are_no_pairs_are_told_by_their_line(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"typed": "a", "meant": "A?", "weight": 2},
        {"typed": "b"},
        {"typed": "c", "meant": "C?", "weight": -1},
    ]
    with pytest.raises(UserError, match=r"line 2: neither typed and meant .* line 3: 'weight'"):
        read_pairs(write_rows(tmp_path / "pairs.jsonl", rows))
    assert read_pairs(write_rows(tmp_path / "one.jsonl", rows[:1]))[0].weight == 2


def test_written_pairs_are_those_of_all_files(tmp_path: Path) -> None:
    row = {"category": "geography", "style": "typos", "typed": "wat", "meant": "What?"}
    write_rows(tmp_path / "b.jsonl", [row])
    write_rows(tmp_path / "a.jsonl", [row | {"meant": "What then?"}])
    found = list(written_pairs(tmp_path))
    assert [pair.rewrite for pair in found] == ["What then?", "What?"]
    assert found[0].category == "geography"
    assert list(written_pairs(tmp_path / "none")) == []


def step(question: str, rewrite: str, gain: float, **changes: Any) -> dict[str, Any]:
    return {
        "update": 1, "env": 0, "step": 0, "terminated": True, "episode_return": gain,
        "question_id": "geo-001", "category": "geography", "operator": "tidy",
        "original_query": question, "query": question, "rewritten_query": rewrite,
        "rewritten_question": rewrite, "previous_answer": "a", "answer": "b",
        "previous_score": 0.2, "score": 0.2 + gain, "reward": gain, "terms": {}, "failed": False,
        "failure": "", "refused_rewrite": "", "costs": {}, **changes,
    }  # fmt: skip


def write_run(run: Path, steps: list[dict[str, Any]]) -> str:
    run.mkdir(exist_ok=True)
    write_rows(run / TRANSITIONS, steps)
    (run / CONFIG).write_text("{}")
    return str(run)


MESSY, CLEAR = "wat is the captial of peru", "What is the capital of Peru?"


def test_a_run_teaches_its_faithful_rewrites_that_gained(tmp_path: Path) -> None:
    other = "how many legs has a spider pls"
    run = write_run(
        tmp_path / "run",
        [
            step(MESSY, CLEAR, 0.3),
            step(MESSY, CLEAR, 0.1),
            step(other, "How many legs does a spider have?", 0.6),
            step(other, "How many eyes does a fly have?", 0.7),  # another question
            step(other, "How many legs does a spider have, please?", 0.01),  # no gain
            step(other, "How many legs has a spider?", -0.2),
            step(other, other, 0.5),  # unchanged
            step(other, "Legs of a spider?", 0.5, failed=True, score=None, failure="timeout"),
        ],
    )
    pairs = gain_pairs(run, load_encoder())
    assert [(pair.question, pair.rewrite) for pair in pairs] == [
        (MESSY, CLEAR),
        (other, "How many legs does a spider have?"),
    ]
    assert pairs[1].weight == pytest.approx(3 * pairs[0].weight)
    known = {question.id: question.meaning for question in load_questions()}
    assert {pair.meaning for pair in pairs} == {known["geo-001"]}


def test_a_run_without_gain_is_told(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [step(MESSY, CLEAR, 0.0)])
    with pytest.raises(UserError, match="no rewrite there asked the same and gained"):
        pairs_of_runs([run])


def sft(model: str, data: str, output: Path, *more: str) -> list[str]:
    flags = ["--lora-rank", "2", "--epochs", "1", "--dtype", "float32"]
    return ["--model", model, "--data", data, "--output", str(output), *flags, *more]


def summary_of(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / SUMMARY).read_text())
    return found


def test_command_lines_of_other_documents_run_as_written(model: str, tmp_path: Path) -> None:
    data, lengths, plan = tmp_path / "train.jsonl", tmp_path / "lengths.jsonl", tmp_path / "plan"
    write_rows(data, ROWS)
    build = ["batching", "lengths", "build", "-d", str(data), "-t", model, "-o", str(lengths)]
    assert cli.main(build) == 0
    build = ["batching", "plan", "build", "-l", str(lengths), "-e", "2", "-b", "512"]
    assert cli.main([*build, "-o", str(plan)]) == 0
    tokens = {}
    for name, flags in {
        "planned": ["--batchplan", str(plan)],
        "buckets": ["--bucket-edges", "32,64", "--token-budget", "512"],
        "packed": ["--pack", "--pack-max-len", "512"],
    }.items():
        assert cli.main(["train", "sft", *sft(model, str(data), tmp_path / name, *flags)]) == 0
        tokens[name] = summary_of(tmp_path / name)["tokens"]
        assert (tmp_path / name / PEFT_DIRECTORY).is_dir()
    assert tokens["buckets"] == tokens["packed"] < tokens["planned"]  # of which nothing is held out
    assert summary_of(tmp_path / "packed")["steps"] < summary_of(tmp_path / "buckets")["steps"]


@pytest.mark.parametrize(
    "row",
    [
        {"text": "Water runs down the hill."},
        {"prompt": "Say water: ", "completion": "water"},
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hey"}]},
    ],
    ids=["text", "completion", "messages"],
)
def test_any_data_is_learned(model: str, tmp_path: Path, row: dict[str, Any]) -> None:
    text = json.dumps(row)
    rows = [
        json.loads(text.replace("ater", f"ater {n}").replace("Hey", f"Hey {n}")) for n in range(40)
    ]
    data = write_rows(tmp_path / "train.jsonl", rows)
    output = tmp_path / "made"
    assert main(sft(model, data, output, "--epochs", "4", "--token-budget", "256")) == 0
    looks = summary_of(output)["looks"]
    assert looks[-1]["heldout_loss"] < looks[0]["heldout_loss"]


def test_a_plan_of_other_data_is_refused(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, lengths, plan = tmp_path / "train.jsonl", tmp_path / "lengths.jsonl", tmp_path / "plan"
    write_rows(data, ROWS)
    cli.main(["batching", "lengths", "build", "-d", str(data), "-t", model, "-o", str(lengths)])
    cli.main(["batching", "plan", "build", "-l", str(lengths), "-b", "512", "-o", str(plan)])
    write_rows(data, ROWS[:-1])
    capsys.readouterr()
    assert main(sft(model, str(data), tmp_path / "made", "--batchplan", str(plan))) == 2
    assert "build the plan again" in capsys.readouterr().err


def test_what_comes_from_a_puzzle_server_is_learned_after_the_data(
    model: str, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "train.jsonl", ROWS)
    with PuzzleServer() as server:
        place = ["--gym-host", "127.0.0.1", "--gym-port", str(server.port)]
        argv = ["train", "sft", "--model", model, "--data", data, "--online", *place]
        argv += ["--lora-rank", "2", "--dtype", "float32", "--output", str(tmp_path / "made")]
        assert cli.main([*argv, "--episodes", "3"]) == 0
    found = summary_of(tmp_path / "made")
    alone = tmp_path / "alone"
    assert main(sft(model, data, alone)) == 0
    assert found["finished"]
    assert found["tokens"] > 2 * summary_of(alone)["tokens"]  # each window replays as much again


def test_a_puzzle_server_that_is_not_there_is_told(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with PuzzleServer() as server:
        port = server.port
    argv = ["--model", model, "--online", "--gym-port", str(port), "--gym-host", "127.0.0.1"]
    assert main([*argv, "--output", str(tmp_path / "made")]) == 2
    assert "--gym-host" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_a_run_that_is_going_is_followed_to_its_end(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    write_run(run, [step(MESSY, CLEAR, 0.3)])
    second = "how many legs has a spider pls", "How many legs does a spider have?"
    taken, read_once = threading.Event(), threading.Event()

    def go_on() -> None:
        with only_writer(run, within=True):
            taken.set()
            read_once.wait(DEADLINE_S)
            with (run / TRANSITIONS).open("a") as log:
                log.write(json.dumps(step(*second, 0.6)) + "\n")

    def read(followed: FollowedRun) -> list[Pair]:
        found = more(followed)
        read_once.set()
        return found

    more = FollowedRun.more
    monkeypatch.setattr(FollowedRun, "more", read)
    writer = threading.Thread(target=go_on)
    writer.start()
    taken.wait(DEADLINE_S)
    assert is_written_to(run)
    argv = ["--model", model, "--online", "--from", str(run), "--output", str(tmp_path / "made")]
    assert main([*argv, "--lora-rank", "2", "--dtype", "float32"]) == 0
    writer.join()
    assert not is_written_to(run)
    prompts = PromptWriter(load_tokenizer(model))
    one, other = (len(prompts.sample("", Pair(*pair))) for pair in ((MESSY, CLEAR), second))
    assert summary_of(tmp_path / "made")["tokens"] == 2 * one + other, "the first is seen again"


def test_asking_whether_a_run_is_written_to_takes_nothing_away(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(run, [])
    (run / LOCK).touch()  # a killed writer's
    assert not is_written_to(run)
    assert (run / LOCK).exists()
    with only_writer(run, within=True):
        assert is_written_to(run)
        assert (run / LOCK).exists()


def test_a_log_is_read_on_from_where_it_was_left(tmp_path: Path) -> None:
    legs = ("how many legs has a spider pls", "How many legs does a spider have?")
    run = write_run(tmp_path / "run", [step(MESSY, CLEAR, 0.3)])
    log = tmp_path / "run" / TRANSITIONS
    followed = FollowedRun(run, load_encoder())
    assert [(pair.question, pair.rewrite) for pair in followed.more()] == [(MESSY, CLEAR)]
    assert followed.more() == []
    whole = json.dumps(step(*legs, 0.6)) + "\n"
    with log.open("a") as file:
        file.write(whole[:20])
    assert followed.more() == []
    with log.open("a") as file:
        file.write(whole[20:])
    assert [pair.question for pair in followed.more()] == [legs[0]]
    # Taken up from a checkpoint, the run goes another way from its first line on.
    write_rows(log, [step(*legs, 0.5), step(*legs, 0.01), step(MESSY, CLEAR, 0.4)])
    assert {pair.question for pair in followed.more()} == {legs[0], MESSY}
    log.write_text(log.read_text() + "{}\n")
    with pytest.raises(UserError, match="is damaged at byte"):
        followed.more()


@pytest.mark.parametrize("gained", [True, False])
def test_a_stop_while_nothing_comes_keeps_what_was_learned(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], gained: bool
) -> None:
    run, made = tmp_path / "run", tmp_path / "made"
    write_run(run, [step(MESSY, CLEAR, 0.3)] if gained else [])
    argv = ["--model", model, "--online", "--from", str(run), "--output", str(made)]
    with only_writer(run, within=True):  # the run goes on, and logs no more
        stop_once(lambda: (made / CONFIG).is_file())
        code = main([*argv, "--lora-rank", "2", "--dtype", "float32"])
    told = capsys.readouterr()
    assert "--resume" not in told.out + told.err
    if gained:
        assert code == 0
        assert (made / PEFT_DIRECTORY / PEFT_WEIGHTS).is_file()
        assert summary_of(made)["steps"] >= 1
    else:
        assert code == 2
        assert "stopped before anything came" in told.err


def stop_once(is_time: Callable[[], bool]) -> None:
    """Interrupts this process as soon as it is time, when its handler is there."""

    def watch() -> None:
        before = signal.getsignal(signal.SIGTERM)
        while not is_time() or signal.getsignal(signal.SIGTERM) == before:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
