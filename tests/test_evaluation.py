"""The evaluation command, on a real run against a simulated server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluate_query_mutator import main
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.operators import load_operators
from query_mutator.servers.simulated import Fault, SimulatedServer, answer_from_questions
from query_mutator.training.trainer import Trainer
from tests.conftest import FEW_QUESTIONS, same_weights
from tests.test_training import scalars, train
from train_query_mutator import main as train_main

FEW = ["--num-questions", "12", "--num-training-questions", "6"]


def figures(run: Path, name: str = "evaluation") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / name / "evaluation.json").read_text())
    return found


def test_an_evaluation_brings_the_runs_report_up_to_date(run: Path) -> None:
    report = run / "report.html"
    assert main([str(run), *FEW]) == 0
    assert not report.exists(), "a run without a report, as asked for, stays without"
    report.write_text("as it was after training")
    assert main([str(run), *FEW]) == 0
    assert "on 12 questions it was not trained on" in report.read_text()


def test_an_evaluation_ends_in_tables_a_picture_figures_and_a_verdict(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([str(run), *FEW]) == 0
    shown = capsys.readouterr().out
    for part in ("policy ahead by", "best single", "best of ", "oracle", "by category"):
        assert part in shown
    found = figures(run)
    assert found["verdict"]["sentence"] in shown
    assert found["questions"] == 12
    assert found["env_steps"] == json.loads((run / "summary.json").read_text())["env_steps"] > 0
    assert len(found["operators"]) == len(load_operators())
    assert (run / "evaluation" / "evaluation.png").read_bytes().startswith(b"\x89PNG")
    assert (run / "evaluation" / "evaluation.txt").read_text().strip() in shown
    unchanged = next(way for way in found["ways"] if way["name"] == "unchanged")
    assert unchanged["target_calls"] == 1
    assert unchanged["seconds"] > 0
    policy = next(way for way in found["ways"] if way["name"] == "policy")
    for part in ("facts", "wording"):
        gained = policy[part] - unchanged[part]
        assert found["apart"][part]["mean"] == pytest.approx(gained)
        assert f"{part} {gained:+.3f} [" in found["verdict"]["sentence"]


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([str(run), *FEW, "--twins", "0"]) == 0
    lines = [one for one in capsys.readouterr().err.splitlines() if one.startswith("evaluating: ")]
    assert lines[0] == "evaluating: 0 of 18 questions"
    assert lines[-1].startswith("evaluating: 18 of 18 questions, ")
    assert lines[-1].endswith(" calls 0 failed")
    assert 5 < len(lines) <= 12
    assert main([str(run), *FEW, "--twins", "0"]) == 0
    assert "evaluating" not in capsys.readouterr().err, "nothing was left to do"


def test_as_many_questions_are_asked_as_the_run_was_to_be_evaluated_on(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "few"
    few = ["--dataset", str(FEW_QUESTIONS), "--use-eval", "--eval-questions", "3"]
    assert train(server, run, *few) == 0
    assert figures(run)["questions"] == 3
    available = 8
    server.reset_stats()
    capsys.readouterr()
    assert main([str(run)]) == 0
    told = capsys.readouterr().err
    assert f"note: 3 of {available} held-out questions are asked, as the run's" in told
    assert server.stats.generation_calls == 0, "they are those of the run's own evaluation"
    assert main([str(run), "--num-questions", "all", "--twins", "0"]) == 0
    assert figures(run)["questions"] == available
    assert "are asked, as the run's" not in capsys.readouterr().err


def test_what_has_been_measured_is_not_asked_again(
    run: Path, server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), *FEW]) == 0
    first = figures(run)
    server.reset_stats()
    assert main([str(run), *FEW]) == 0
    assert server.stats.generation_calls == 0
    assert figures(run) == first


def test_an_evaluation_that_lost_its_server_goes_on_with_the_same_command(
    run: Path, server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.set_faults(Fault("bad_request", calls=range(100, 10_000)))
    capsys.readouterr()
    assert main([str(run), *FEW, "--batch-size", "1"]) == 1
    said = capsys.readouterr().err
    assert "go on with: " in said
    kept = (run / "evaluation" / "records.jsonl").read_text().splitlines()
    done = [json.loads(line)["id"] for line in kept[1:] if not json.loads(line)["failure"]]
    assert done
    server.set_faults()
    server.reset_stats()
    assert main([str(run), *FEW, "--batch-size", "1"]) == 0
    assert figures(run)["questions"] == 12
    assert figures(run)["left_out"] == 0


def test_a_torn_last_record_is_measured_again(run: Path) -> None:
    assert main([str(run), *FEW]) == 0
    first = figures(run)
    records = run / "evaluation" / "records.jsonl"
    records.write_text(records.read_text()[:-40])
    assert main([str(run), *FEW]) == 0
    assert scores(run) == {way["name"]: way["score"] for way in first["ways"]}


def test_several_runs_are_judged_together(
    run: Path, server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(run), str(tmp_path / "other")]
    assert train(server, Path(runs[1]), "--seed", "5") == 0
    capsys.readouterr()
    assert main([*runs, *FEW]) == 0
    shown = capsys.readouterr().out
    assert "2 policies on 12 held-out questions" in shown
    leads = []
    for path in runs:
        score = scores(Path(path))
        leads.append(score["policy"] - score["unchanged"])
    assert all(f"\n    in {part}  " in shown for part in ("facts", "wording"))
    together = next(line for line in shown.splitlines()[::-1] if line.startswith("  unchanged"))
    assert f"{sum(leads) / 2:+.3f} [" in together
    assert together.endswith(", ".join(f"{lead:+.3f}" for lead in leads))
    said = shown.strip().splitlines()[-1]
    assert "on 12 questions it was not trained on" in said
    assert said.startswith(("The mean of the 2 policies", "Cannot tell"))


def test_what_cannot_be_judged_is_refused_before_anything_is_asked(
    run: Path, server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert train(server, other, "--objective", "helpful") == 0
    for runs, said in (
        ([str(run), str(run)], "named twice"),
        ([str(run), str(other)], "different objectives"),
        ([str(run), str(tmp_path / "none")], "none"),
        ([str(run), str(other), "--output", str(tmp_path / "o")], "--output is for one run"),
        ([str(run), "--output", str(run / "config.json")], "is a file: name a directory"),
        ([str(run), "--judge-model", "wise:70b"], "asks no judge"),
    ):
        capsys.readouterr()
        assert main(runs) == 2
        error = capsys.readouterr().err
        assert said in error
        assert len(error.splitlines()) <= 2
    assert not (run / "evaluation").exists()


def scores(run: Path) -> dict[str, float]:
    return {way["name"]: way["score"] for way in figures(run)["ways"]}


def test_another_target_model_tests_transfer_beside_the_first(run: Path) -> None:
    assert main([str(run), *FEW, "--target-model", "qwen2.5:3b"]) == 0
    found = figures(run, "evaluation-qwen2.5_3b")
    assert found["target_model"] == "qwen2.5:3b"
    assert not (run / "evaluation").exists()


def test_another_mutator_goes_beside_the_first_and_the_runs_own_models_do_not(run: Path) -> None:
    few = ["--num-questions", "2", "--num-training-questions", "2"]
    assert main([str(run), *few, "--mutator-model", "llama3.2:3b"]) == 0
    assert figures(run, "evaluation-mutator_llama3.2_3b")["mutator_model"] == "llama3.2:3b"
    assert main([str(run), *few, "--target-model", "llama3.2:3b", "--margin", "0.05"]) == 0
    found = figures(run)
    assert (found["margin"], found["dataset"], found["judge_model"]) == (0.05, "shipped", None)


def test_records_of_other_weights_under_the_same_name_are_not_used(
    run: Path, server: SimulatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ["--num-questions", "2", "--num-training-questions", "2"]
    assert main([str(run), *few]) == 0
    monkeypatch.setattr(
        "query_mutator.servers.simulated.models.stable_hash", lambda *_: 7
    )  # a pull, say
    server.reset_stats()
    assert main([str(run), *few]) == 0
    assert server.stats.generation_calls > 0


def test_where_nothing_can_be_asked_the_reason_is_quoted(
    run: Path, server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.set_faults(Fault("bad_request", model="qwen2.5:3b", text="too wise to rewrite"))
    capsys.readouterr()
    few = ["--num-questions", "2", "--num-training-questions", "2"]
    assert main([str(run), *few]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert "no question could be asked in every way (mutation: " in said
    assert "too wise to rewrite" in said


def test_a_judge_is_compared_with_key_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def judge(prompt: str) -> str:
        """The letter of the answer that quotes the reference; B where it cannot tell."""
        reference = prompt.partition("Correct answer: ")[2].partition("\n")[0]
        return "A" if reference in prompt.partition("Answer A: ")[2].partition("\n")[0] else "B"

    answers = answer_from_questions(DEFAULT_FILE)

    def answer(model: str, system: str, prompt: str) -> str:
        return judge(prompt) if model == "wise:70b" else answers(model, system, prompt)

    run = tmp_path / "run"
    models = ("qwen2.5:3b", "llama3.2:3b", "wise:70b")
    with SimulatedServer(models=models, answer=answer) as server:
        assert train(server, run, "--objective", "judge", "--judge-model", "wise:70b") == 0
        capsys.readouterr()
        assert main([str(run), *FEW]) == 0
    shown = capsys.readouterr()
    assert "judge wise:70b" in shown.err
    assert "the judge, of " in shown.out
    found = figures(run)
    assert found["judge_model"] == "wise:70b"
    assert 0 < found["judge"]["agreeing"] <= found["judge"]["decided"] <= found["judge"]["judged"]
    assert found["judge"]["agreement"] == pytest.approx(
        found["judge"]["agreeing"] / found["judge"]["decided"]
    )


def test_other_questions_can_be_asked(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    rows = [
        {"id": f"m{n}", "question": f"What is {n} plus {n}?", "reference": f"It is {2 * n}.",
         "key_facts": [[str(2 * n)]], "split": "heldout"}
        for n in range(3, 8)
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, rows)))
    assert main([str(run), "--dataset", str(file), "--num-training-questions", "4"]) == 0
    assert figures(run, "evaluation-mine")["questions"] == 5


def test_the_run_brings_its_own_operators(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[operator]]\nname = "please"\ntemplate = "Please: {query}"\n')
    run = tmp_path / "run"
    flags = ["--operators", str(file), "--only-operators", "please,rephrase"]
    assert train(server, run, *flags) == 0
    file.unlink()
    assert main([str(run), *FEW]) == 0
    assert [way["name"] for way in figures(run)["operators"]] == ["please", "rephrase"]


@pytest.mark.parametrize("what", ["questions", "objective", "operators"])
def test_what_the_run_was_trained_with_must_not_have_changed(
    what: str, server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions, objective = tmp_path / "mine.jsonl", tmp_path / "mine.py"
    questions.write_text(DEFAULT_FILE.read_text())
    objective.write_text("def brief(batch):\n    return [1.0 for _ in batch.answers]\n")
    run = tmp_path / "run"
    flags = ["--dataset", str(questions), "--objective", f"{objective}:brief"]
    assert train(server, run, *flags) == 0
    if what == "questions":
        rows = questions.read_text().splitlines()
        questions.write_text("\n".join(row for row in rows if '"heldout"' not in row))
    elif what == "objective":
        objective.write_text(objective.read_text().replace("1.0", "2.0"))
    else:
        config = json.loads((run / "config.json").read_text())
        config["operators"][0]["description"] = "another one"
        (run / "config.json").write_text(json.dumps(config))
    capsys.readouterr()
    assert main([str(run), *FEW]) == 2
    said = capsys.readouterr().err
    assert "its questions, operators or objective have changed since it was trained" in said
    assert len(said.splitlines()) <= 2
    assert not (run / "evaluation").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nowhere"], "holds no run"),
        (["{run}", "--num-questions", "0"], "must be a whole number from 1 on"),
        (["{run}", "--margin", "2"], "must be a number between 0 and 1"),
        (["{run}", "--dataset", "nowhere.jsonl"], "cannot read the dataset"),
        (["{run}", "--target-model", "mistral"], "no model 'mistral'"),
        (["{run}", "--output", "{run}/config.json/x"], "cannot write to"),
    ],
)
def test_bad_input_is_one_clear_line(
    argv: list[str], message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([part.replace("{run}", str(run)) for part in argv]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert message in "\n".join(said)


def test_training_ends_in_an_evaluation_and_draws_the_held_out_curve(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    flags = ["--use-eval", "--eval-questions", "10", "--eval-interval", "2", "--eval-sample", "5"]
    assert train(server, run, *flags) == 0
    assert figures(run)["questions"] == 10
    assert figures(run)["verdict"]["sentence"] in capsys.readouterr().out
    curve = scalars(run)["Reward/heldout"]
    assert [step for step, _ in curve] == [32, 48]
    assert json.loads((run / "summary.json").read_text())["heldout_gain"] == pytest.approx(
        curve[-1][1], abs=1e-6
    )


def test_a_judge_that_is_not_asked_need_not_answer(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with SimulatedServer(models=("wise:70b",)) as judge:
        flags = ["--judge-server", judge.url, "--judge-model", "wise:70b"]
        assert train(server, run, *flags) == 0
    assert "asks no judge: the one named is not used" in capsys.readouterr().err
    assert main([str(run), *FEW]) == 0


def test_the_calls_of_the_curves_last_point_are_counted(
    server: SimulatedServer, tmp_path: Path
) -> None:
    calls = []
    for name, interval in (("without", "0"), ("with", "1000")):
        flags = ["--eval-interval", interval, "--eval-sample", "20"]
        assert train(server, tmp_path / name, *flags) == 0
        calls.append(json.loads((tmp_path / name / "summary.json").read_text())["model_calls"])
    assert calls[1] >= calls[0] + 20


def test_an_update_is_kept_when_its_point_of_the_curve_is_interrupted(
    server: SimulatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    flags = ["--eval-interval", "2", "--eval-sample", "5", "--save-interval", "50"]
    assert train(server, whole, *flags) == 0

    def interrupted(_: Trainer) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_heldout_gain", interrupted)
        assert train(server, run, *flags) == 130
    assert json.loads((run / "summary.json").read_text())["env_steps"] == 32
    resume = ["--resume", "--run-dir", str(run), "--server", server.url]
    assert train_main(resume) == 0
    assert scalars(run)["Reward/heldout"] == scalars(whole)["Reward/heldout"]
    assert same_weights(run, whole)


def test_a_resumed_run_may_draw_the_curve_otherwise(
    server: SimulatedServer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert train(server, run, "--eval-sample", "3") == 0
    resume = ["--resume", "--run-dir", str(run), "--server", server.url]
    more = ["--num-env-steps", "64", "--eval-interval", "1"]
    assert train_main([*resume, *more]) == 0
    assert [step for step, _ in scalars(run)["Reward/heldout"]] == [48, 64]


def test_questions_that_are_all_trained_on_are_not_evaluated(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.jsonl"
    rows = [{"question": f"What is {n}?", "reference": f"{n}.", "split": "train"} for n in range(8)]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert train(server, tmp_path / "run", "--use-eval", "--dataset", str(file)) == 0
    assert "no question is held out" in capsys.readouterr().out
