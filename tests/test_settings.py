"""Flags: one definition, sensible parsing, and reasons for what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.objectives import OBJECTIVES
from query_mutator.runs.hints import hints
from query_mutator.runs.settings import WEIGHTS, Settings, build_parser, parse_settings


def parse(*argv: str) -> Settings:
    return parse_settings(build_parser("train", ""), list(argv))


def test_defaults_are_those_of_the_documents() -> None:
    settings = parse()
    assert settings == Settings()
    assert (settings.num_processes, settings.num_steps, settings.num_env_steps) == (16, 4, 10_000)
    assert (settings.ppo_epoch, settings.num_mini_batch, settings.batch_size) == (8, 4, "auto")
    assert settings.use_batching
    assert settings.server == []


def test_every_setting_is_in_the_help_with_its_default() -> None:
    text = build_parser("train", "").format_help()
    for item in fields(Settings):
        assert f"--{item.name.replace('_', '-')}" in text
    assert "(default 10000)" in text


@pytest.mark.parametrize("text", ["1e4", "10000", "10_000", "1E4"])
def test_numbers_of_steps_parse_as_people_write_them(text: str) -> None:
    assert parse("--num-env-steps", text).num_env_steps == 10_000


def test_no_batching_is_one_call_at_a_time() -> None:
    assert parse("--no-batching").max_workers == 1
    assert parse("--batch-size", "1").max_workers == 1
    assert parse("--batch-size", "5").max_workers == 5
    assert parse("--batch-size", "auto").max_workers is None
    assert parse("--batch-size", "auto", "--no-batching").max_workers == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--batch-size", "0"], "--batch-size must be at least 1, not 0"),
        (["--batch-size", "four"], "--batch-size must be auto or a whole number, not 'four'"),
        (["--num-steps", "1.5"], "--num-steps must be a whole number"),
        (["--num-env-steps", "inf"], "--num-env-steps must be a whole number"),
        (["--lr", "0"], "--lr must be above 0"),
        (["--lr", "nan"], "--lr must be above 0"),
        (["--lr", "inf"], "--lr must be at most 1, not inf"),
        (["--lr", "1e39"], "--lr must be at most 1, not 1e+39"),
        (["--clip-param", "1e39"], "--clip-param must be at most"),
        (["--value-loss-coef", "1e39"], "--value-loss-coef must be at most"),
        (["--entropy-coef", "1e39"], "--entropy-coef must be at most"),
        (["--facts-weight", "1e39"], "--facts-weight must be at most"),
        (["--max-grad-norm", "inf"], "--max-grad-norm must be finite"),
        (["--gamma", "1.1"], "--gamma must be at most 1"),
        (["--num-mini-batch", "600"], "more than the 64 transitions of a rollout"),
        (["--num-env-steps", "5"], "less than one step for each of the 16 environments"),
        (["--facts-weight", "0", "--closeness-weight", "0"], "nothing to score"),
        (["--objective", "judge", "--verdict-weight", "0"], "--verdict-weight cannot be 0"),
        (
            ["--objective", "helpful", "--willing-weight", "0", "--on-point-weight", "0"],
            "--willing-weight and --on-point-weight cannot both be 0 with --objective helpful",
        ),
        (["--batchsize", "4"], "unrecognized arguments"),
        (["--resume"], "--resume needs --run-dir"),
        (["--resume", "--run-dir", "x", "--config", "y"], "leave out --config"),
        (["--seed", "1e30"], "--seed must be at most"),
        (["--timeout", "1e10"], "--timeout must be at most"),
        (["--num-processes", "1e7"], "--num-processes must be at most"),
        (["--config", "nowhere.json"], "cannot read the config file"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(argv: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(*argv)
    assert message in str(caught.value)
    assert str(caught.value).count("\n") <= 1


def test_weights_count_for_the_objective_that_has_them() -> None:
    assert parse("--objective", "judge", "--facts-weight", "0", "--closeness-weight", "0")
    assert set(WEIGHTS) == set(OBJECTIVES)
    help_text = " ".join(build_parser("train", "").format_help().split())
    assert f"what a good answer is: {', '.join(OBJECTIVES)}, or file.py:name" in help_text


@pytest.mark.parametrize(
    ("processes", "batch", "hinted"), [(16, 8, 0), (8, 8, 0), (7, 8, 1), (17, 8, 1), (5, 1, 0)]
)
def test_processes_out_of_proportion_get_one_line(processes: int, batch: int, hinted: int) -> None:
    settings = parse("--num-processes", str(processes), "--batch-size", str(batch))
    assert len(hints(settings)) == hinted


def test_the_command_line_wins_over_the_config_file(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"settings": {"lr": 0.5, "num-steps": 7, "run_dir": "old"}}))
    settings = parse("--config", str(config), "--num-steps", "9")
    assert (settings.lr, settings.num_steps, settings.run_dir) == (0.5, 9, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a JSON file"),
        ("[]", "does not hold settings"),
        ('{"learning_rate": 1}', "unknown setting 'learning_rate'"),
        ('{"lr": "fast"}', "--lr must be a number"),
        ('{"use_batching": "no"}', "--use-batching must be true or false"),
        ('{"server": 5}', "--server must be a list of texts"),
        ('{"lr": null}', "--lr must be a number"),
        ('{"operators": [1, 2]}', "--operators must be a list of texts"),
    ],
)
def test_a_bad_config_file_is_refused(content: str, message: str, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(content)
    with pytest.raises(UserError) as caught:
        parse("--config", str(config))
    assert message in str(caught.value)


def test_what_a_run_stores_repeats_it(tmp_path: Path) -> None:
    settings = parse("--lr", "0.01", "--operators", "a.toml", "--no-batching", "--target-kl", "0.1")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"settings": settings.stored()}))
    assert parse("--config", str(config)).stored() == settings.stored()


@pytest.mark.parametrize(
    "script", ["train_query_mutator.py", "mutate_query.py", "benchmark_batching.py"]
)
def test_help_imports_nothing_heavy(script: str) -> None:
    """Counted in modules, not in seconds: torch alone takes more than one."""
    code = (
        f"import runpy, sys; sys.argv = [{script!r}, '--help']\n"
        f"try: runpy.run_path({script!r}, run_name='help').get('main')(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'numpy', 'transformers', 'requests') if m in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "usage:" in output
    assert output.rstrip().endswith("[]")
