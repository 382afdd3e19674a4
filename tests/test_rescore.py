"""Runs scored again from their logs, without a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evaluate_query_mutator
from query_mutator.base.files import replaced_directory
from query_mutator.cli import main
from query_mutator.objectives.version import SCORING
from query_mutator.servers.simulated import SimulatedServer
from tests.conftest import FEW_QUESTIONS
from tests.test_training import train

FEW = ["--num-questions", "6", "--num-training-questions", "4"]
SCORES = ("previous_score", "score", "reward", "episode_return")


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "transitions.jsonl").read_text().splitlines()]


def files(run: Path, *, but: str = "") -> dict[str, bytes]:
    """All that a run holds."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and not (but and but in path.parts)
    }


def set_config(run: Path, **settings: Any) -> None:
    config = json.loads((run / "config.json").read_text())
    config["settings"] |= settings
    (run / "config.json").write_text(json.dumps(config))


def set_history(run: Path, scores: list[int] | None) -> None:
    """Which scores paid the steps of the run; None as in a run that does not say."""
    config = json.loads((run / "config.json").read_text())
    config.pop("trained_under_score", None)
    if scores is not None:
        config["trained_under_score"] = scores
    (run / "config.json").write_text(json.dumps(config))


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_seconds(one) for key, one in value.items() if key != "seconds"}
    return [without_seconds(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def evaluated(run: Path) -> Path:
    assert evaluate_query_mutator.main([str(run), *FEW]) == 0
    return run


def test_by_the_score_that_it_was_paid_by_a_run_stays_what_it_is(
    evaluated: Path, server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(evaluated)
    server.reset_stats()
    capsys.readouterr()
    assert main(["rescore", str(evaluated)]) == 0

    shown = capsys.readouterr().out
    assert f"by score {SCORING}, without a call" in shown
    for part in ("as logged", "score unchanged", "mean return at last", "gain by clarify"):
        assert part in shown
    assert server.stats.generation_calls == 0
    assert files(evaluated, but="rescored") == before, "the run's own files changed"
    after = files(evaluated / "rescored")
    assert after["transitions.jsonl"] == before["transitions.jsonl"]
    for name in ("evaluation.json", "evaluation.txt", "evaluation.png"):
        assert after[f"evaluation/{name}"] == before[f"evaluation/{name}"]
    summary = json.loads(after["summary.json"])
    assert summary["as_logged"] == summary["rescored"]
    assert shown.count(summary["evaluations"]["evaluation"]["rescored"]) == 2

    assert main(["rescore", str(evaluated)]) == 0
    assert files(evaluated / "rescored") == after, "twice is not the same"


@pytest.mark.parametrize(
    ("objective", "other", "kept"),
    [
        ("answer", {"facts_weight": 0.9, "drift_threshold": 0.0}, []),
        ("helpful", {"willing_weight": 0.1, "drift_threshold": 0.0}, []),
        ("consistency", {"drift_weight": 3.0, "drift_threshold": 0.0}, ["stable", "willing"]),
        ("judge", {"drift_weight": 3.0, "drift_threshold": 0.0}, ["verdict"]),
    ],
)
def test_the_scores_are_those_that_the_run_would_have_been_paid(
    objective: str,
    other: dict[str, float],
    kept: list[str],
    server: SimulatedServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before the first update no reward has told: two runs that are paid otherwise act alike."""
    one, another = tmp_path / "one", tmp_path / "another"
    few = ["--dataset", str(FEW_QUESTIONS), "--objective", objective, "--num-questions", "12"]
    few += ["--num-steps", "8", "--num-env-steps", "32"]
    assert train(server, one, *few) == 0
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in other.items()]
    assert train(server, another, *few, *flags) == 0
    logged, expected = lines(one), lines(another)
    assert [[line[name] for name in SCORES] for line in logged] != [
        [line[name] for name in SCORES] for line in expected
    ], "nothing tells the two scores apart"

    set_config(one, **other)
    capsys.readouterr()
    assert main(["rescore", str(one)]) == 0
    found = lines(one / "rescored")
    for line, wanted, old in zip(found, expected, logged, strict=True):
        for name in SCORES:
            assert line.pop(name) == pytest.approx(wanted[name], abs=1e-9), name
        terms = line.pop("terms")
        if dropped := line.pop("dropped", None):
            again = wanted["dropped"]
            assert dropped["answer"] == again["answer"]
            assert dropped["score"] == pytest.approx(again["score"], abs=1e-9)
        assert set(terms) == set(wanted["terms"])
        assert line == {name: value for name, value in old.items() if name in line}
        for name, term in terms.items():
            if name not in kept:
                assert term == wanted["terms"][name]
            else:
                assert term == old["terms"][name]
    said = capsys.readouterr().out
    assert (f"kept as logged, as they take calls: {', '.join(kept)}" in said) == bool(kept)


def test_a_verdict_is_that_of_an_evaluation_by_the_other_score(evaluated: Path) -> None:
    before = json.loads((evaluated / "evaluation" / "evaluation.json").read_text())
    set_config(evaluated, closeness_weight=3.0, drift_threshold=0.0)
    assert main(["rescore", str(evaluated)]) == 0
    found = json.loads((evaluated / "rescored" / "evaluation" / "evaluation.json").read_text())
    assert evaluate_query_mutator.main([str(evaluated), *FEW]) == 0
    expected = json.loads((evaluated / "evaluation" / "evaluation.json").read_text())
    assert without_seconds(found) == without_seconds(expected)
    assert without_seconds(found) != without_seconds(before)
    assert found["gap"]["pairs"] > 0, "no twin was asked"


def test_an_evaluation_of_other_questions_is_rescored_by_their_references(
    evaluated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.jsonl"
    rows = [
        {"id": f"m{n}", "question": f"What is {n} plus {n}?", "reference": f"It is {2 * n}.",
         "key_facts": [[str(2 * n)]], "split": "heldout"}
        for n in range(3, 9)
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, rows)))
    flags = ["--dataset", str(file), "--num-questions", "4", "--num-training-questions", "3"]
    assert evaluate_query_mutator.main([str(evaluated), *flags]) == 0
    assert main(["rescore", str(evaluated)]) == 0
    for name in ("evaluation", "evaluation-mine"):
        made = (evaluated / "rescored" / name / "evaluation.json").read_text()
        assert made == (evaluated / name / "evaluation.json").read_text()

    file.unlink()
    capsys.readouterr()
    assert main(["rescore", str(evaluated)]) == 0
    shown = capsys.readouterr()
    assert "evaluation-mine is left out: cannot read the dataset" in shown.err
    assert not (evaluated / "rescored" / "evaluation-mine").exists()
    assert (evaluated / "rescored" / "evaluation").exists()


def cut_figures(evaluation: Path) -> None:
    (evaluation / "evaluation.json").unlink()


def cut_records(evaluation: Path) -> None:
    records = (evaluation / "records.jsonl").read_text().splitlines(keepends=True)
    (evaluation / "records.jsonl").write_text("".join(records[:3]))


def other_ways(evaluation: Path) -> None:
    text = (evaluation / "records.jsonl").read_text()
    (evaluation / "records.jsonl").write_text(text.replace('"tidy": {', '"untidy": {', 1))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_figures, "has not come to its end"),
        (cut_records, "do not hold the 6 questions of its verdict"),
        (other_ways, "not every question was asked in the same ways"),
    ],
)
def test_an_evaluation_that_cannot_be_rescored_is_left_out_in_a_line(
    damage: Callable[[Path], None],
    said: str,
    evaluated: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(evaluated / "evaluation")
    capsys.readouterr()
    assert main(["rescore", str(evaluated)]) == 0
    shown = capsys.readouterr()
    assert said in shown.err
    assert "no evaluation to rescore" in shown.out
    assert not (evaluated / "rescored" / "evaluation").exists()


def damaged_line(run: Path) -> None:
    log = run / "transitions.jsonl"
    log.write_text(log.read_text().replace('"operator"', "operator", 1))


def lost_line(run: Path) -> None:
    """The first step of the first episode that has two."""
    log = run / "transitions.jsonl"
    kept = log.read_text().splitlines(keepends=True)
    steps = [json.loads(line) for line in kept]
    second = next(step for step in steps if step["query"] != step["original_query"])
    kept.pop(steps.index(second) - 4)
    log.write_text("".join(kept))


def other_question(run: Path) -> None:
    log = run / "transitions.jsonl"
    first = json.loads(log.read_text().splitlines()[0])["original_query"]
    log.write_text(log.read_text().replace(json.dumps(first), '"Who?"'))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (damaged_line, "transitions.jsonl, line 1 is damaged"),
        (lost_line, "is damaged: it does not follow from the line before it"),
        (other_question, "line 1: the question '"),
        (lambda run: (run / "transitions.jsonl").unlink(), "cannot read the log of a run"),
        (lambda run: (run / "transitions.jsonl").write_text(""), "has made no step yet"),
        (lambda run: (run / "config.json").unlink(), "holds no run"),
        (lambda run: (run / "rescored").write_text("mine"), "was not written by rescore"),
        (lambda run: (run / "rescored").mkdir(), "was not written by rescore"),
        (lambda run: set_config(run, dataset="gone.jsonl"), "cannot read the dataset gone.jsonl"),
        (lambda run: set_config(run, embedding_model="nomic"), "embedding model nomic is on a"),
        (lambda run: set_history(run, ["3"]), "trained_under_score"),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_rescored_is_one_clear_line_and_leaves_nothing(
    damage: Callable[[Path], object],
    said: str,
    run: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(run)
    before = files(run)
    capsys.readouterr()
    assert main(["rescore", str(run)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) <= 2
    assert files(run) == before
    assert not [path for path in run.iterdir() if path.name.startswith(".")]


def test_questions_that_have_changed_since_are_told(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions, run = tmp_path / "mine.jsonl", tmp_path / "run"
    questions.write_text(FEW_QUESTIONS.read_text())
    assert train(server, run, "--dataset", str(questions)) == 0
    questions.write_text(FEW_QUESTIONS.read_text().replace('"reference": "', '"reference": "Oh. '))
    assert main(["rescore", str(run)]) == 0
    assert "its questions, operators or objective have changed" in capsys.readouterr().out
    assert json.loads((run / "rescored" / "summary.json").read_text())["same_task"] is False


OWN = """
from pathlib import Path
from query_mutator.objectives import Evidence, Objective

def brief(batch):
    if Path(__file__).with_name("interrupt").exists():
        raise KeyboardInterrupt
    return [-len(answer) / 100 for answer in batch.answers]

async def ask(asked, roles):
    return Evidence((await roles.answer_call(asked.prompt_for("Why?"))).text)

asking = Objective(brief, ask)
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


def test_an_objective_of_the_users_own_scores_again_and_has_no_version(
    own: Path, server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run, "--objective", f"{own}:brief") == 0
    assert json.loads((run / "config.json").read_text())["trained_under_score"] == []
    assert main(["rescore", str(run)]) == 0
    assert (run / "rescored" / "transitions.jsonl").read_bytes() == (
        run / "transitions.jsonl"
    ).read_bytes()
    capsys.readouterr()
    assert evaluate_query_mutator.main([str(run), *FEW]) == 0
    assert "trained under" not in capsys.readouterr().err


def test_an_objective_whose_own_calls_are_not_logged_is_refused(
    own: Path, server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run, "--objective", f"{own}:asking") == 0
    capsys.readouterr()
    assert main(["rescore", str(run)]) == 2
    assert "makes calls of its own" in capsys.readouterr().err
    assert not (run / "rescored").exists()


def test_an_interruption_leaves_what_was_there(
    own: Path, server: SimulatedServer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert train(server, run, "--objective", f"{own}:brief") == 0
    own.with_name("interrupt").touch()
    before = files(run)
    assert main(["rescore", str(run)]) == 130
    assert files(run) == before
    own.with_name("interrupt").unlink()
    assert main(["rescore", str(run)]) == 0
    before = files(run)
    own.with_name("interrupt").touch()
    assert main(["rescore", str(run)]) == 130
    assert files(run) == before


def write_into(place: Path, name: str, *, error: str = "") -> None:
    with replaced_directory(place) as within:
        (within / name).touch()
        if error:
            raise OSError(error)


def test_a_directory_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "place"
    write_into(place, "a")
    place.rename(tmp_path / ".place.old")  # as a process killed between two renames leaves it
    (tmp_path / ".place.new").mkdir()
    (tmp_path / ".place.new" / "half").touch()
    with pytest.raises(OSError, match="full"):
        write_into(place, "b", error="full")
    assert [path.name for path in place.iterdir()] == ["a"]
    write_into(place, "c")
    assert [path.name for path in place.iterdir()] == ["c"]
    assert [path.name for path in tmp_path.iterdir() if "place" in path.name] == ["place"]


def test_a_line_that_is_being_written_is_left_and_a_rescored_run_goes_on(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = run / "transitions.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"update": 4, "env"')
    assert main(["rescore", str(run)]) == 0
    assert "ends in the middle of a line: rescored" in capsys.readouterr().err
    assert (run / "rescored" / "transitions.jsonl").read_bytes() == whole
    flags = ["--resume", "--run-dir", str(run), "--num-env-steps", "64"]
    assert main(["train", *flags]) == 0
    assert len(lines(run)) == 64
