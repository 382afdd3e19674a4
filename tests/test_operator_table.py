"""The table of operators: a fair order, whole rows, and an interruption that changes nothing."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.operator_table.__main__ import main
from benchmarks.operator_table.asking import calls_needed
from benchmarks.operator_table.gains import as_text, gains_of
from benchmarks.operator_table.questions import wordings
from benchmarks.operator_table.rows import Rows, TableFile, read_table
from query_mutator.data import load_questions, load_twins
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.evaluation.measuring import UNCHANGED
from query_mutator.objectives import Weights, load_objective
from query_mutator.operators import load_operators
from query_mutator.servers.simulated import Fault, SimulatedServer, answer_from_questions
from tests import killable
from tests.conftest import FEW_QUESTIONS, SIMULATED_FLAGS
from tests.killable import ended, until
from tests.operator_tables import row, tried, write_table

OPERATORS = "qa,tidy,clarify"
STUCK = Fault("hang", model="qwen2.5:3b", calls=[10])
"""One question is not rewritten: its row is missing until the command is ended."""


def flags(server: SimulatedServer, output: Path, *more: str) -> list[str]:
    of_server = ["--server", server.url, *SIMULATED_FLAGS, "--no-cache"]
    asked = ["--dataset", str(FEW_QUESTIONS), "--operators", OPERATORS]
    return ["--output", str(output), *of_server, *asked, *more]


def command(argv: Sequence[str]) -> int:
    """The command, by a name that another process finds it by."""
    return main(argv)


def start(argv: list[str], log: Path) -> ForkServerProcess:
    """The command in a process of its own, to be ended."""
    return killable.forked(killable.command, command, argv, log)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def untimed(path: Path) -> list[dict[str, Any]]:
    """What a table holds, but how long the server took."""
    lines = [json.loads(line) for line in lines_of(path)]
    for line in lines[1:]:
        for way in line["ways"].values():
            del way["seconds"]
    return lines


@pytest.fixture
def few() -> Any:
    with SimulatedServer(slots=8, answer=answer_from_questions(FEW_QUESTIONS)) as server:
        yield server


def test_any_beginning_is_a_fair_sample() -> None:
    questions, twins = load_questions(), load_twins()
    ordered = wordings(questions, twins)
    assert ordered == wordings(questions[::-1][::-1], twins)
    assert len({one.question.id for one in ordered}) == len(ordered) == len(questions) + len(twins)
    half = ordered[: len(questions)]
    assert len({one.question.meaning for one in half}) == len(questions), "each meaning once"
    share = sum(question.split == "train" for question in questions) / len(questions)
    messy = Counter(one.style for one in ordered if one.style != "clear")
    for size in (100, 300, 1000):
        assert sum(one.style == "clear" for one in ordered[:size]) == size // 2
        trained = sum(one.question.split == "train" for one in ordered[:size])
        assert abs(trained / size - share) < 0.1
    assert len(messy) >= 10, "the manner in which a question is messy is known"
    categories = {question.category for question in questions}
    assert {one.question.category for one in ordered[:300]} == categories


def test_a_row_holds_every_way_and_what_a_policy_sees_first(
    few: SimulatedServer, tmp_path: Path, models_for: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.jsonl"
    assert main(flags(few, table, "--questions", "12")) == 0
    said = capsys.readouterr()
    assert "12 questions to ask in 4 ways: at most 60 calls" in said.err
    assert few.stats.generation_calls <= 60
    assert "best single operator: " in said.out

    questions = {question.id: question for question in load_questions(FEW_QUESTIONS)}
    operators = [one for one in load_operators() if one.name in OPERATORS.split(",")]
    assert calls_needed(12, operators) == 60
    models = models_for(few, max_tokens_answer=40)
    objective = load_objective("answer", Weights())
    found = read_table(table)
    assert found.operators == OPERATORS.split(",")
    assert len(found.rows) == 12
    for one in found.rows:
        question = questions[one.id]
        env = QueryMutationEnv([question], operators, objective, models)
        observation, info = env.reset()
        assert np.array_equal(np.array(one.observation, np.float32), observation)
        assert one.ways[UNCHANGED].score == info["score"]
        assert one.ways[UNCHANGED].answer == info["answer"]
        _, gain, *_ = env.step(1 + OPERATORS.split(",").index("qa"))
        assert one.ways["qa"].score - one.ways[UNCHANGED].score == pytest.approx(gain)
        assert one.ways["qa"].terms["facts"]["value"] in (0.0, 1.0)
        assert (one.split, one.category, one.question) == (
            question.split,
            question.category,
            question.question,
        )


def test_a_table_that_was_killed_goes_on_to_be_the_same(
    few: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    assert main(flags(few, whole)) == 0

    few.set_faults(STUCK)
    process = start(flags(few, parts), tmp_path / "log")
    until(lambda: len(lines_of(parts)) > 3, process)
    process.kill()
    assert ended(process) == -signal.SIGKILL
    few.set_faults()
    kept = len([line for line in lines_of(parts)[1:] if line.endswith("}")])
    assert 3 <= kept < 32
    with parts.open("ab") as file:  # as a kill in the midst of a write does
        file.write(b'{"id": "geo-0')

    few.reset_stats()
    assert main(flags(few, parts)) == 0
    assert f"{32 - kept} questions to ask" in capsys.readouterr().err
    assert few.stats.generation_calls <= calls_needed(
        32 - kept, [one for one in load_operators() if one.name in OPERATORS.split(",")]
    )
    assert untimed(parts) == untimed(whole)
    assert os.listdir(tmp_path).count("parts.jsonl") == 1
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".partial")]

    few.reset_stats()
    assert main(flags(few, parts)) == 0
    assert few.stats.generation_calls == 0, "all rows are there"


def test_ctrl_c_keeps_the_rows_and_says_how_to_go_on(few: SimulatedServer, tmp_path: Path) -> None:
    table, log = tmp_path / "table.jsonl", tmp_path / "log"
    few.set_faults(STUCK)
    argv = flags(few, table)
    process = start(argv, log)
    until(lambda: len(lines_of(table)) > 2, process)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    assert ended(process) == 130
    said = log.read_text()
    assert "Traceback" not in said
    kept = len(read_table(table).rows)
    again = f"python -m benchmarks.operator_table {shlex.join(argv)}"
    assert f"{kept} rows kept; go on with: {again}" in said


def test_more_questions_are_added_and_a_changed_one_is_asked_again(
    few: SimulatedServer, tmp_path: Path
) -> None:
    table = tmp_path / "table.jsonl"
    assert main(flags(few, table, "--questions", "4", "--split", "heldout")) == 0
    assert {one.split for one in read_table(table).rows} == {"heldout"}
    file = TableFile(table, read_table(table).conditions)
    first = next(iter(file.rows.values()))
    file.rows[first.id] = replace(first, question="it was asked otherwise", sha256="0" * 64)
    file.drop(["nobody"])  # writes what is in memory
    few.reset_stats()
    assert main(flags(few, table, "--questions", "6", "--split", "heldout")) == 0
    rows = read_table(table).rows
    assert len(rows) == 6
    assert first in [replace(one, ways=first.ways) for one in rows]
    operators = [one for one in load_operators() if one.name in OPERATORS.split(",")]
    assert 0 < few.stats.generation_calls <= calls_needed(3, operators)


def test_a_question_whose_call_failed_is_left_out_and_asked_again(
    few: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.jsonl"
    few.set_faults(Fault("bad_request", calls=range(3, 5)))
    assert main(flags(few, table, "--questions", "8")) == 0
    assert "left out, as a call failed; the same command asks them again" in capsys.readouterr().err
    assert 0 < len(read_table(table).rows) < 8
    few.set_faults()
    assert main(flags(few, table, "--questions", "8")) == 0
    assert len(read_table(table).rows) == 8


def test_rows_made_otherwise_are_not_mixed(
    few: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.jsonl"
    assert main(flags(few, table, "--questions", "3")) == 0
    before = table.read_bytes()
    capsys.readouterr()
    assert main([*flags(few, table, "--questions", "3"), "--operators", "qa"]) == 2
    said = capsys.readouterr().err
    assert f"{table} was made with other observations and operators" in said
    assert main([*flags(few, table), "--max-tokens-answer", "7"]) == 2
    assert "other calls" in capsys.readouterr().err
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the table"),
        ("", "is not a table of operators"),
        ('{"fingerprint": "x"}\n', "is not a table of operators"),
        ("not json\n", "is not a table of operators"),
        ('{"kind": "operator table", "format": 0}\n', "of another version"),
        (
            '{"kind": "operator table", "format": 1, "conditions": {}}\n{"id": 3}\n',
            "line 2 is not a row",
        ),
    ],
)
def test_what_is_no_table_is_refused_in_a_line(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.jsonl"
    if content is not None:
        file.write_text(content)
    assert main(["--output", str(file), "--show"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) <= 2


def test_a_file_in_no_directory_is_refused_before_anything_is_asked(
    few: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags(few, tmp_path / "none" / "table.jsonl")) == 2
    assert "there is no directory" in capsys.readouterr().err
    assert few.stats.generation_calls == 0


def test_gains_are_told_by_style_and_facts_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        row(
            number,
            {"qa": 0.4 if number % 2 else 0.8, "tidy": 0.5},
            style="typos" if number % 2 == 0 else "clear",
            split="heldout" if number % 3 else "train",
        )
        for number in range(40)
    ]
    path = write_table(tmp_path / "table.jsonl", rows)
    assert main(["--output", str(path), "--show"]) == 0
    shown = capsys.readouterr().out
    assert "40 questions: 20 clear, 20 messy; 14 to train on, 26 held out" in shown
    score, facts = (shown.split("\n\n")[number].splitlines() for number in (1, 2))
    assert score[0].split() == ["score", "all", "clear", "messy", "left", "alone"]
    assert facts[0].startswith("facts")
    qa = next(line for line in score if line.startswith("qa"))
    assert qa.index("+0.100 [") < qa.index("-0.100 [-0.100, -0.100]") < qa.index("+0.300 [+0.300")
    assert "best single operator: qa, +0.100 [" in shown
    assert "chosen on the training questions, on held-out ones: qa, +0.100 [" in shown


def test_questions_without_facts_count_in_the_score_alone() -> None:
    with_facts = [row(number, {"qa": 1.0}) for number in range(12)]
    ways = {UNCHANGED: tried(0.5), "qa": tried(0.0)}
    without = [replace(row(number, {}), ways=ways) for number in range(20, 32)]
    facts = gains_of([*with_facts, *without], ["qa"], lambda way: _facts(way.terms))
    assert facts["qa"].mean == 0.5
    assert facts["qa"].groups == 12
    text = as_text(Rows({}, without))
    assert "to leave the question alone is better" in text
    assert "nan" not in text


def test_wordings_of_a_meaning_are_one_draw() -> None:
    alone = [row(number, {"qa": 1.0 if number % 2 else 0.25}) for number in range(40)]
    doubled = alone + [replace(one, id=f"{one.id}~messy") for one in alone]
    single, double = (
        gains_of(rows, ["qa"], lambda way: way.score)["qa"] for rows in (alone, doubled)
    )
    assert double.mean == single.mean
    assert double.high - double.low == pytest.approx(single.high - single.low)


def _facts(terms: dict[str, dict[str, Any]]) -> float:
    return float(terms["facts"]["value"]) if terms else float("nan")
