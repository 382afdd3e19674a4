"""A rewriter is trained, stopped, killed and taken up again: the same to the bit."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from query_mutator.base.adapter_files import PEFT_DIRECTORY, PEFT_WEIGHTS
from query_mutator.runs import tags
from query_mutator.runs.checkpoints import read_checkpoint, write_checkpoint
from query_mutator.runs.directory import CHECKPOINTS, CONFIG, SUMMARY, TENSORBOARD
from tests import killable
from tests.killable import ended, until
from tests.tiny_models import make_llama, make_model
from train_mutator_lm import main

PAIRS = [
    ("wat is the captial of peru", "What is the capital of Peru?"),
    ("how many day in a week pls", "How many days are in a week?"),
    ("colour of sky??", "What colour is the sky?"),
    ("who rote hamlet", "Who wrote Hamlet?"),
    ("umm like biggest ocean", "What is the biggest ocean?"),
    ("2 plus 2 is wat", "What is 2 plus 2?"),
    ("planet nearest sun", "Which planet is nearest to the sun?"),
    ("legs on spider how many", "How many legs has a spider?"),
]
SMALL = [
    *("--token-budget", "256", "--pack-max-len", "256", "--validation-share", "0.25"),
    *("--epochs", "2", "--lora-rank", "4", "--dtype", "float32", "--generated", "1"),
    *("--lora-dropout", "0.1", "--save-interval", "1"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_llama(tmp_path_factory.mktemp("llama")))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    rows = [{"typed": typed, "meant": meant} for typed, meant in PAIRS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, model: str, pairs: str) -> Path:
    """A rewriter that was trained without a stop."""
    output = tmp_path_factory.mktemp("rewriters") / "whole"
    assert main(flags(model, pairs, output)) == 0
    return output


def flags(model: str, pairs: str, output: Path, *more: str) -> list[str]:
    return ["--model", model, "--pairs", pairs, "--output", str(output), *SMALL, *more]


def adapter_of(output: Path) -> bytes:
    return (output / PEFT_DIRECTORY / PEFT_WEIGHTS).read_bytes()


def last_checkpoint(output: Path) -> dict[str, torch.Tensor]:
    newest = max((output / CHECKPOINTS).glob("*.safetensors"))
    tensors = safetensors.torch.load_file(newest)
    del tensors["state"]  # holds seconds
    return tensors


def looks_of(output: Path) -> list[dict[str, Any]]:
    looks: list[dict[str, Any]] = json.loads((output / SUMMARY).read_text())["looks"]
    for look in looks:
        del look["tokens_per_second"]
    return looks


def assert_same(output: Path, whole: Path) -> None:
    assert adapter_of(output) == adapter_of(whole)
    ours, theirs = last_checkpoint(output), last_checkpoint(whole)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert looks_of(output) == looks_of(whole)


def test_a_training_leaves_an_adapter_that_peft_loads_and_a_lower_loss(
    whole: Path, model: str
) -> None:
    import peft
    from transformers import AutoModelForCausalLM

    looks = looks_of(whole)
    assert looks[-1]["heldout_loss"] < looks[0]["heldout_loss"]
    base = AutoModelForCausalLM.from_pretrained(model)
    adapted = peft.PeftModel.from_pretrained(base, str(whole / PEFT_DIRECTORY))
    inner = next(p for name, p in adapted.named_parameters() if "lora_B" in name)
    assert inner.abs().max() > 0
    config = json.loads((whole / CONFIG).read_text())
    assert config["settings"]["lora_rank"] == 4
    assert config["versions"]["torch"] == torch.__version__
    summary = json.loads((whole / SUMMARY).read_text())
    assert summary["finished"]
    assert summary["best_heldout_loss"] == min(look["heldout_loss"] for look in looks)
    assert len(list((whole / CHECKPOINTS).iterdir())) == 2


def test_the_curves_have_the_names_of_the_glossary(whole: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(whole / TENSORBOARD)).Reload()
    found = [point.value for point in events.Scalars(tags.TUNING_HELDOUT_LOSS)]
    assert found == pytest.approx([look["heldout_loss"] for look in looks_of(whole)])
    assert tags.TUNING_LOSS in events.Tags()["scalars"]


def test_the_same_seed_trains_the_same_rewriter(
    whole: Path, model: str, pairs: str, tmp_path: Path
) -> None:
    assert main(flags(model, pairs, tmp_path / "again")) == 0
    assert_same(tmp_path / "again", whole)
    assert main(flags(model, pairs, tmp_path / "other", "--seed", "2")) == 0
    assert adapter_of(tmp_path / "other") != adapter_of(whole)


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [40, 90])
def test_killed_and_resumed_is_never_interrupted(
    whole: Path, model: str, pairs: str, tmp_path: Path, kill_at: int
) -> None:
    output = tmp_path / "killed"
    argv = flags(model, pairs, output)
    process = killable.forked(killable.command, main, argv, tmp_path / "log", output, kill_at)
    assert ended(process) == -signal.SIGKILL
    assert not (output / SUMMARY).exists()
    assert main(["--resume", "--output", str(output)]) == 0
    assert_same(output, whole)


def test_ctrl_c_ends_after_the_step_and_resuming_goes_on(
    model: str, pairs: str, tmp_path: Path
) -> None:
    # So many steps that the signal comes in the midst of them on any machine.
    long = ["--epochs", "40", "--save-interval", "10", "--eval-interval", "1000"]
    output = tmp_path / "stopped"
    argv = flags(model, pairs, output, *long)
    process = killable.forked(killable.command, main, argv, tmp_path / "log")
    first = output / CHECKPOINTS / "step-000000000010.safetensors"
    until(lambda: first.exists(), process)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    assert ended(process) == 130
    assert not json.loads((output / SUMMARY).read_text())["finished"]
    assert main(["--resume", "--output", str(output)]) == 0
    assert main(flags(model, pairs, tmp_path / "whole", *long)) == 0
    assert_same(output, tmp_path / "whole")


@pytest.mark.parametrize("missing", [SUMMARY, "adapter.gguf", "README.md"])
def test_what_comes_after_the_last_step_is_written_by_resuming(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    (copy / missing).unlink()
    assert main(["--resume", "--output", str(copy)]) == 0
    told = capsys.readouterr().out
    assert f"  cd {copy}\n  ollama create copy" in told
    assert "--rewriter" not in told, "that takes adapters of the embedded model alone"
    for file in (SUMMARY, "adapter.gguf"):
        assert (copy / file).read_bytes() == (whole / file).read_bytes()
    assert main(["--resume", "--output", str(copy)]) == 2


def test_an_export_that_cannot_be_written_is_an_error(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    (copy / "adapter.gguf").unlink()
    (copy / "adapter.gguf").mkdir()
    assert main(["--resume", "--output", str(copy)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert "not exported: cannot write" in lines[-2]
    assert f"--resume --output {copy}" in lines[-1]


def test_a_model_of_another_kind_is_trained_without_an_export(
    pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    granite = str(make_model(tmp_path / "granite", "granite", logits_scaling=8.0))
    assert main(flags(granite, pairs, tmp_path / "made", "--epochs", "1")) == 0
    assert "adapters of granite are not exported" in capsys.readouterr().out
    assert (tmp_path / "made" / PEFT_DIRECTORY).is_dir()


def test_a_finished_training_is_not_gone_on_with(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--resume", "--output", str(whole)]) == 2
    assert "trained to its end" in capsys.readouterr().err


def test_resuming_takes_no_other_settings(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--resume", "--output", str(whole), "--lora-rank", "8"]) == 2
    assert "lora_rank" in capsys.readouterr().err


def test_pairs_that_changed_since_are_not_resumed_with(
    whole: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"typed": "a b", "meant": "A b?"}\n' * 4)
    config = json.loads((copy / CONFIG).read_text())
    config["settings"]["pairs"] = [str(file)]
    (copy / CONFIG).write_text(json.dumps(config))
    assert main(["--resume", "--output", str(copy)]) == 2
    assert "have changed since" in capsys.readouterr().err


@pytest.mark.parametrize("moment", ["step", "exp_avg", "exp_avg_sq"])
@pytest.mark.parametrize("damage", ["of another shape", "missing"])
def test_moments_that_do_not_fit_the_weights_are_told(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], moment: str, damage: str
) -> None:
    output = tmp_path / "copy"
    shutil.copytree(whole, output)
    newest = max((output / CHECKPOINTS).iterdir())
    checkpoint = read_checkpoint(newest, tensor_bytes=2**30)
    name = next(name for name in checkpoint.tensors if name.startswith(f"{moment}."))
    if damage == "missing":
        del checkpoint.tensors[name]
    else:
        checkpoint.tensors[name] = checkpoint.tensors[name].new_zeros(3, 5)
    write_checkpoint(newest, checkpoint)
    assert main(["--resume", "--output", str(output)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "does not fit its config.json: " in said[0]
    assert name in said[0]


def test_training_ends_early_where_patience_is_over(model: str, pairs: str, tmp_path: Path) -> None:
    more = ["--patience", "1", "--lr", "1", "--eval-interval", "1", "--epochs", "30"]
    assert main(flags(model, pairs, tmp_path / "early", *more)) == 0
    looks = looks_of(tmp_path / "early")
    assert looks[-1]["heldout_loss"] >= min(look["heldout_loss"] for look in looks[:-1])
    config = json.loads((tmp_path / "early" / CONFIG).read_text())
    assert looks[-1]["step"] < config["steps"]


@pytest.mark.parametrize(
    "more",
    [
        ["--full"],
        ["--gradient-checkpointing", "--grad-accumulation", "2"],
        ["--dtype", "bfloat16", "--schedule", "linear"],
        ["--bucket-edges", "64,128", "--token-budget", "512"],
    ],
    ids=["full", "checkpointing", "bfloat16", "buckets"],
)
def test_other_ways_to_train_lower_the_loss_too(
    model: str, pairs: str, tmp_path: Path, more: list[str]
) -> None:
    output = tmp_path / "made"
    assert main(flags(model, pairs, output, *more)) == 0
    looks = looks_of(output)
    assert looks[-1]["heldout_loss"] < looks[0]["heldout_loss"]


def test_a_full_model_is_loaded_by_its_directory(model: str, pairs: str, tmp_path: Path) -> None:
    assert main(flags(model, pairs, tmp_path / "full", "--full", "--epochs", "1")) == 0
    again = flags(str(tmp_path / "full" / "model"), pairs, tmp_path / "again", "--epochs", "1")
    assert main(again) == 0


def test_accumulated_batches_are_one_step(model: str, pairs: str, tmp_path: Path) -> None:
    common = ["--lora-dropout", "0", "--epochs", "1", "--warmup", "0", "--schedule", "constant"]
    together = ["--token-budget", "4096", "--pack-max-len", "4096"]
    apart = ["--grad-accumulation", "100"]
    assert main(flags(model, pairs, tmp_path / "together", *common, *together)) == 0
    assert main(flags(model, pairs, tmp_path / "apart", *common, *apart)) == 0
    (one,), (other,) = looks_of(tmp_path / "together"), looks_of(tmp_path / "apart")
    assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)
    assert one["gradient_norm"] == pytest.approx(other["gradient_norm"], rel=1e-3)


def test_a_full_disk_is_told_and_leaves_no_half_file(
    model: str, pairs: str, tmp_path: Path
) -> None:
    output, log = tmp_path / "full", tmp_path / "log"
    argv = flags(model, pairs, output, "--lora-rank", "64")
    process = killable.forked(killable.command, main, argv, log, None, 0, 100_000)
    assert ended(process) == 2
    told = log.read_text()
    assert "error: " in told
    assert "Traceback" not in told
    assert not list(tmp_path.rglob("*.partial"))
    assert not (output / CONFIG).exists()


def test_a_loss_that_is_no_number_ends_the_training(
    model: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    weights = safetensors.torch.load_file(broken / "model.safetensors")
    weights["model.norm.weight"][:] = float("nan")
    safetensors.torch.save_file(weights, broken / "model.safetensors", {"format": "pt"})
    assert main(flags(str(broken), pairs, tmp_path / "made")) == 2
    assert "diverged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--model", "{empty}"], "no config.json"),
        (["--model", "{pairs}"], "no GGUF"),
        (["--model", "no-such-model-anywhere"], "there is no model"),
        (["--pairs", "{nothing}"], "holds no pairs"),
        (["--pairs", "{bad}"], "line 2"),
        (["--from", "{empty}"], "that is no run"),
        (["--data", "{nothing}"], "holds no texts"),
        (["--bucket-edges", "512,128"], "--bucket-edges"),
        (["--batchplan", "{empty}"], "--data"),
        (["--dtype", "float64"], "--dtype"),
        (["--merged", "q3"], "--merged must be q8_0 or q4_0 or f16, not 'q3'"),
        (["--merged", "q8_0"], "a merged GGUF is made of a base that is a GGUF"),
        (["--full", "--merged", "q8_0"], "--full takes no --merged"),
        (["--data", "{nothing}", "--pairs", "{bad}"], "--data takes no --pairs"),
        (["--data", "{nothing}", "--from", "{empty}"], "--data takes --from with --online alone"),
        (["--data", "{nothing}", "--generated", "1"], "--data takes no --generated"),
        (["--data", "{nothing}", "--keep-clear", "0"], "--data takes no --keep-clear"),
        (["--online", "--pairs", "{bad}"], "--online takes no --pairs"),
        (["--online", "--generated", "1"], "--online takes no --generated"),
        (["--online", "--epochs", "1"], "--online takes no --epochs"),
        (["--online", "--batchplan", "{empty}"], "--online takes no --batchplan"),
        (["--batchplan", "{empty}", "--pack"], "--batchplan takes no --pack:"),
        (["--batchplan", "{empty}", "--bucket-edges", "8,16"], "takes no --bucket-edges"),
        (["--batchplan", "{empty}", "--token-budget", "64"], "takes no --token-budget"),
        (["--batchplan", "{empty}", "--validation-share", "0"], "takes no --validation-share"),
        (["--gym-host", "localhost"], "--gym-host is for --online"),
        (["--gym-port", "8023"], "--gym-port is for --online"),
        (["--episodes", "3"], "--episodes is for --online"),
        (["--online", "--from", "{empty}", "--gym-port", "1"], "--online --from takes no --gym-po"),
        (["--lr", "0"], "--lr"),
    ],
)
def test_what_cannot_work_is_told_in_a_line_and_nothing_is_written(
    model: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, change: list[str], told: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    places = {name: tmp_path / name for name in ("empty", "nothing.jsonl", "bad.jsonl")}
    places["empty"].mkdir()
    places["nothing.jsonl"].write_text("")
    places["bad.jsonl"].write_text('{"typed": "a", "meant": "A?"}\n{"typed": "b"}\n')
    named = {name.removesuffix(".jsonl"): str(place) for name, place in places.items()}
    without_pairs = ("--data", "--batchplan", "--online")
    argv = ["--output", str(tmp_path / "made"), *([] if change[0] in without_pairs else SMALL)]
    if change[0] != "--model":
        argv += ["--model", model]
    if change[0] not in ("--pairs", "--from", *without_pairs):
        argv += ["--pairs", pairs]
    assert main([*argv, *(part.format(pairs=pairs, **named) for part in change)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert told in " ".join(lines)
    assert len(lines) <= 2
    assert not (tmp_path / "made").exists()
