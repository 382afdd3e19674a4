"""Adapters as contenders of an evaluation: rows of their own beside the run's ways of asking."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluate_query_mutator import main as evaluate
from ollama_utils import batch_mutate_queries
from query_mutator import cli
from query_mutator.base.errors import UserError
from query_mutator.base.weights import gguf_path
from query_mutator.data import Question
from query_mutator.evaluation.measuring import UNCHANGED, Measured, Tried, fingerprint
from query_mutator.evaluation.styles import gains_by_style, styles_as_text
from query_mutator.models.connect import connect
from query_mutator.models.session import open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.operators import named_operators
from query_mutator.servers.rewriters import MOST_CONTENDERS, find_contenders, find_rewriter
from query_mutator.servers.simulated import SimulatedServer
from tests.adapters import rewriter_directory
from tests.conftest import FEW_QUESTIONS
from train_query_mutator import main as train

RAW = """
[[operator]]
name = "raw"
preserves_meaning = false
tuned = true
instruction = "Rewrite the question."
"""
"""A tuned operator without a check of its rewrites: random weights say anything."""


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two of the same name."""
    folder = tmp_path_factory.mktemp("rewriters")
    return [
        rewriter_directory(folder / seed / "mine", seed=number)
        for number, seed in enumerate(("first", "second"), 1)
    ]


def test_contenders_are_named_by_as_many_folders_as_tell_them_apart(
    adapters: list[Path], tmp_path: Path
) -> None:
    file = tmp_path / "v1.5.gguf"
    shutil.copy(rewriter_directory(tmp_path / "third", seed=3) / "adapter.gguf", file)
    found = find_contenders([*adapters, file])
    assert list(found) == ["first/mine", "second/mine", "v1.5"]
    assert list(find_contenders(adapters[:1])) == ["mine"]
    assert list(find_contenders([adapters[0] / "adapter.gguf"])) == ["mine"]
    assert found["v1.5"] == find_rewriter(file)


def test_contenders_that_cannot_be_told_apart_or_read_are_refused(
    adapters: list[Path], tmp_path: Path
) -> None:
    beside = adapters[0].with_suffix(".gguf")
    shutil.copy(adapters[1] / "adapter.gguf", beside)
    (tmp_path / "text.gguf").write_text("no GGUF")
    one = adapters[0]
    for paths, told in (
        ([one, one / "adapter.gguf"], "is the adapter in .*/first/mine/adapter.gguf: name each"),
        ([one, beside], "two contenders are called .*/first/mine: rename one"),
        ([tmp_path / "text.gguf"], "is not a GGUF file; --contender takes"),
        ([tmp_path], "holds no adapter.gguf"),
        ([tmp_path / "nothing"], "cannot read"),
        (["none"], "there is `unchanged`"),
        ([one] * (MOST_CONTENDERS + 1), f"at most {MOST_CONTENDERS}"),
    ):
        with pytest.raises(UserError, match=told):
            find_contenders(paths)


def test_a_server_that_takes_no_adapters_is_told(
    run: Path, server: SimulatedServer, adapters: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    server.reset_stats()
    capsys.readouterr()
    assert evaluate([str(run), "--contender", str(adapters[0])]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "qwen2.5:3b rewrites, on a server that takes none: leave it out, or give" in said[0]
    assert server.stats.generation_calls == 0
    assert not (run / "evaluation").exists()


@pytest.mark.slow
def test_the_contender_that_is_no_adapter_of_the_model_is_named(adapters: list[Path]) -> None:
    settings = ModelSettings("embedded", slots=1, num_ctx=512, contenders=[*adapters, gguf_path()])
    with pytest.raises(UserError, match=f"did not start with the rewriter {gguf_path()};"):
        connect(settings)


def messy(row: dict[str, Any]) -> bool:
    return bool(row["style"] == "messy")


def figures(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "evaluation.json").read_text())
    return found


def records(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "records.jsonl").read_text().splitlines()[1:]]


@pytest.mark.slow
def test_each_adapter_is_a_row_of_its_own_and_changes_none_of_the_others(
    adapters: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, operators, cache = tmp_path / "run", tmp_path / "raw.toml", tmp_path / "cache.sqlite"
    operators.write_text(RAW)
    rows = [json.loads(line) for line in FEW_QUESTIONS.read_text().splitlines()]
    rows = [row | {"twin": "Clearly: " + row["question"]} if messy(row) else row for row in rows]
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--num-processes", "2", "--num-steps", "2", "--num-env-steps", "8", "--no-eval"]
    flags += ["--batch-size", "2", "--max-tokens-answer", "8", "--max-tokens-mutation", "12"]
    flags += ["--dataset", str(questions), "--num-questions", "4", "--eval-interval", "0"]
    flags += ["--operators", str(operators), "--only-operators", "qa,raw", "--no-report"]
    flags += ["--rewriter", "none", "--cache", str(cache)]
    assert train(["--server", "embedded", "--run-dir", str(run), *flags]) == 0
    few = ["--num-training-questions", "2"]
    assert evaluate([str(run), *few, "--output", str(tmp_path / "without")]) == 0
    capsys.readouterr()
    contending = [part for path in adapters for part in ("--contender", str(path))]
    assert evaluate([str(run), *few, *contending]) == 0

    shown, found = capsys.readouterr().out, figures(run / "evaluation")
    without = figures(tmp_path / "without")
    names = ["raw by first/mine", "raw by second/mine"]
    assert [way["name"] for way in found["contenders"]] == names
    assert without["contenders"] == []
    for key in ("ways", "operators", "verdict", "categories", "best_single"):
        assert found[key] == without[key]
    for way in found["contenders"]:
        assert (way["target_calls"], way["mutator_calls"]) == (1.0, 1.0)
        assert way["seconds"] > 0
        assert way["facts"] is not None
        assert way["policy_ahead"]["groups"] == found["questions"]
    assert [style["style"] for style in found["styles"]] == ["messy", "clear"]
    assert sum(style["questions"] for style in found["styles"]) == found["questions"]
    closers = {closer["name"]: closer["asks_mutator"] for closer in found["gap"]["closers"]}
    assert all(closers[name] for name in names)
    assert "contenders: adapters of the embedded model, each asked alone" in shown
    assert shown.count("\n  raw by first/mine ") == 4, "costs, two styles, the gap"

    asked = [one for one in records(run / "evaluation") if one["policy"]]
    assert all(list(one["contenders"]) == names for one in asked)
    for name, path in zip(names, adapters, strict=True):
        settings = ModelSettings(
            "embedded", slots=2, max_tokens_mutation=12, rewriter=path, cache_file=cache
        )
        with open_models(settings) as models:
            raw = named_operators(["raw"], [operators])[0]
            by_itself = batch_mutate_queries(
                [one["question"] for one in asked], raw, models=models, max_workers=1
            )
        assert [rewrite.question for rewrite in by_itself] == [
            one["contenders"][name]["rewritten_question"] for one in asked
        ]
    first, second = (
        [one["contenders"][name]["rewritten_question"] for one in asked] for name in names
    )
    assert first != second

    assert cli.main(["rescore", str(run)]) == 0
    again = figures(run / "rescored" / "evaluation")
    for key in ("contenders", "styles", "gap"):
        assert again[key] == found[key]

    moved = shutil.move(adapters[0], adapters[0].with_name("other"))
    assert evaluate([str(run), *few, "--contender", str(moved)]) == 0
    alone = figures(run / "evaluation")["contenders"]
    # What it said is remembered by its weights: costs are as they were.
    assert [one["name"] for one in alone] == ["raw by other"]
    assert alone[0] | {"name": names[0], "policy_ahead": 0} == found["contenders"][0] | {
        "policy_ahead": 0
    }
    shutil.move(moved, adapters[0])


def tried(score: float, facts: float) -> Tried:
    terms = {"facts": {"value": facts, "weight": 1.0, "why": ""}}
    return Tried(score, terms, "", "", "", [], 1, 0, 0.1)


def test_gains_are_told_by_style_and_facts_apart() -> None:
    questions, measured = [], []
    for number, style in enumerate(["messy"] * 3 + ["clear"] * 2 + ["sideways"]):
        question = Question(str(number), f"What is {number}?", columns={"style": style.title()})
        gain, facts = (0.5, 1.0) if style == "messy" else (-0.25, 0.0)
        ways = {UNCHANGED: tried(0.25, 0.0), "tidy": tried(0.25, 0.5)}
        measured.append(
            Measured(
                question.id,
                question.question,
                question.id,
                "any",
                fingerprint(question),
                ways,
                tried(0.75, 0.0),
                contenders={"clarify by mine": tried(0.25 + gain, facts)},
            )
        )
        questions.append(question)
    messy, clear = gains_by_style(measured, questions)
    assert (messy.style, messy.questions, clear.style, clear.questions) == ("messy", 3, "clear", 2)
    means = {
        way: (messy.ways[way]["score"].mean, messy.ways[way]["facts"].mean) for way in messy.ways
    }
    assert means == {"policy": (0.5, 0.0), "tidy": (0.0, 0.5), "clarify by mine": (0.5, 1.0)}
    assert clear.ways["clarify by mine"]["score"].mean == -0.25
    text = styles_as_text((messy, clear))
    assert text[0] == "gain over unchanged on 3 messy questions"
    assert text[1].splitlines()[-1].split() == ["clarify", "by", "mine", "+0.500", "+1.000"]
    assert gains_by_style(measured, []) == ()
