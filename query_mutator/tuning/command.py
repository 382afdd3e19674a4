"""`train-mutator`: from pairs and a base model to a directory with an adapter."""

from __future__ import annotations

import contextlib
import platform
import shlex
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from query_mutator.base.adapter_files import PEFT_DIRECTORY
from query_mutator.base.errors import UserError, is_out_of_memory
from query_mutator.base.terminal import counted, show_warnings
from query_mutator.base.weights import EMBEDDED
from query_mutator.runs.directory import CONFIG, SUMMARY, RunDirectory
from query_mutator.tuning.adapter import Trained
from query_mutator.tuning.apart import packing_of
from query_mutator.tuning.base_model import compute_dtype, load_base_model
from query_mutator.tuning.directory import RewriterDirectory, default_output
from query_mutator.tuning.export import (
    NoFormError,
    check_can_be_merged,
    export_adapter,
    is_exported,
)
from query_mutator.tuning.learning import Losses
from query_mutator.tuning.material import Material, load_material
from query_mutator.tuning.progress import EXIT_CODE, Progress, Stopping
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.settings import TuningSettings, settings_of
from query_mutator.tuning.trainer import Trainer

PACKAGES = ("torch", "transformers", "peft", "numpy")


def train_mutator(settings: TuningSettings) -> int:
    """Trains a rewriter, or goes on with one; returns the exit code."""
    show_warnings()
    if settings.resume and settings.output is None:
        raise UserError("--resume goes on with the rewriter in --output: name it")
    directory = RewriterDirectory(settings.output or default_output())
    stored: dict[str, Any] = {}
    if settings.resume:
        directory.check_resumable()
        stored = directory.read_json(CONFIG)
        settings = _stored_settings(settings, stored, directory.path)
        if settings.online:
            raise UserError(f"{directory.path} learned online: what came then does not come again")
    else:
        directory.check_new()
    if settings.merged:
        check_can_be_merged(settings.model, settings.merged)
    with _told(settings, directory):
        trainer, material = _trainer(settings, directory)
        return _run(trainer, material, stored)


def _run(trainer: Trainer, material: Material, stored: dict[str, Any]) -> int:
    directory, settings = trainer.directory, trainer.settings
    digest = material.digest()
    if stored:
        if stored.get("data_digest") != digest:
            raise UserError(
                f"cannot resume {directory.path}: the pairs or the plan have changed since.\n"
                "Train anew in another --output"
            )
        directory.take()
    else:
        directory.create()
    try:
        if stored:
            trainer.take_up()
            if trainer.is_done and _is_written(settings, directory):
                raise UserError(f"{directory.path} is trained to its end: nothing is left to do")
        else:
            trainer.save()
            directory.write_json(CONFIG, _config(settings, digest, trainer, material))
        _say_beginning(trainer, material)
        # Its files are written in an instant: who asks to end waits for them.
        with Stopping() as stopping:
            return _train_and_write(trainer, stopping)
    finally:
        directory.release()


def _train_and_write(trainer: Trainer, stopping: Stopping) -> int:
    """All that is left to do, from the steps to the export; returns the exit code."""
    directory, settings, state = trainer.directory, trainer.settings, trainer.state
    ended = trainer.is_done
    if not ended:
        progress = Progress(
            trainer.num_steps, state.step,
            seconds=state.seconds, learning=state.learning_seconds,
        )  # fmt: skip
        with contextlib.closing(progress):
            ended = trainer.train(progress, stopping)
    directory.write_json(SUMMARY, _summary(trainer, ended))
    if not ended:
        print(f"stopped at step {state.step}; --resume --output {directory.path} goes on")
        return EXIT_CODE
    _say_end(trainer)
    if not settings.full:
        _export(settings, directory.path)
    return 0


def _is_written(settings: TuningSettings, directory: RunDirectory) -> bool:
    """Whether all that comes after the last step is there."""
    if not (directory.path / SUMMARY).is_file():
        return False
    if not directory.read_json(SUMMARY).get("finished"):
        return False
    return settings.full or is_exported(directory.path, settings.merged)


def _export(settings: TuningSettings, path: Path) -> None:
    """Writes what servers take; a model of a kind that llama.cpp's adapters lack stays as it is."""
    try:
        exported = export_adapter(
            path / PEFT_DIRECTORY, settings.model, path, merged=settings.merged
        )
    except NoFormError as error:
        print(f"no GGUF of it was written: {error}")
        return
    except UserError as error:
        raise UserError(
            f"it is trained, and not exported: {' '.join(str(error).split())}.\n"
            f"--resume --output {path} tries again"
        ) from error
    use = f"use it with --rewriter {path}, or as" if settings.model == EMBEDDED else "it becomes"
    print(f"{exported.adapter}: {use} a model of Ollama's:")
    commands = (f"cd {shlex.quote(str(path))}", *exported.ollama_commands)
    print("\n".join(f"  {command}" for command in commands))


def _trainer(settings: TuningSettings, directory: RewriterDirectory) -> tuple[Trainer, Material]:
    """All parts of a training, made in the order in which they can be wrong."""
    torch.manual_seed(settings.seed)
    dtype = compute_dtype(settings)
    # What is trained stays in float32: small steps would be lost in fewer bits.
    base = load_base_model(settings.model, torch.float32 if settings.full else dtype)
    packing = packing_of(base)
    writer = PromptWriter(base.tokenizer)
    material = load_material(settings, writer, packing)
    trained = Trained(base, settings)
    if settings.gradient_checkpointing:
        base.model.gradient_checkpointing_enable({"use_reentrant": False})
        base.model.enable_input_require_grads()
    losses = Losses(base, dtype)
    return Trainer(settings, trained, writer, material, packing, losses, directory), material


def _stored_settings(asked: TuningSettings, stored: dict[str, Any], path: Path) -> TuningSettings:
    """The settings of the run that is gone on with; others cannot be given."""
    try:
        found = settings_of(dict(stored["settings"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path / CONFIG} is damaged: it has no settings") from error
    plain = TuningSettings()
    for name, value in asked.stored().items():
        if value not in (getattr(plain, name), getattr(found, name)):
            raise UserError(f"--resume takes all settings from {path}: give no others ({name})")
    return replace(found, output=str(path), resume=True)


def _config(
    settings: TuningSettings, digest: str, trainer: Trainer, material: Material
) -> dict[str, Any]:
    return {
        "settings": settings.stored(),
        "data_digest": digest,
        "samples": material.num_pairs,
        "held_out": material.num_held_out,
        "steps": trainer.num_steps,
        "packing": str(trainer.packing),
        "threads": torch.get_num_threads(),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
    }


def _summary(trainer: Trainer, ended: bool) -> dict[str, Any]:
    state = trainer.state
    return {
        "finished": ended,
        "steps": state.step,
        "tokens": state.tokens,
        "seconds": round(state.seconds, 1),
        "learning_seconds": round(state.learning_seconds, 1),
        "tokens_per_second": round(state.tokens / max(1e-9, state.learning_seconds), 1),
        "best_heldout_loss": state.best_loss,
        "best_step": state.best_step,
        "looks": state.history,
    }


def _say_beginning(trainer: Trainer, material: Material) -> None:
    settings, trained = trainer.settings, trainer.trained
    weights = sum(parameter.numel() for parameter in trained.parameters().values())
    what = "all weights" if trained.is_full else f"a LoRA adapter of rank {settings.lora_rank}"
    print(
        f"{settings.model}: {what} ({weights / 1e6:.1f}M), "
        f"{counted(material.num_pairs, 'sample')} ({material.num_held_out:,} held out), "
        f"{counted(trainer.num_steps, 'step') if trainer.num_steps else 'then what comes'}",
        flush=True,
    )


def _say_end(trainer: Trainer) -> None:
    state, path = trainer.state, trainer.directory.path / trainer.trained.directory_name
    best = "" if state.best_loss is None else f", held-out loss {state.best_loss:.4f}"
    print(
        f"{path}: best at step {state.best_step}{best}; {state.tokens:,} tokens in "
        f"{state.seconds:.0f} s, {state.tokens / max(1e-9, state.learning_seconds):.0f} tokens/s"
    )


@contextlib.contextmanager
def _told(settings: TuningSettings, directory: RunDirectory) -> Iterator[None]:
    """Turns what ends a training into a line that says what to do."""
    try:
        yield
    except FloatingPointError as error:
        raise UserError(
            f"the training diverged: {error}.\nA lower --lr than {settings.learning_rate:g} helps"
        ) from error
    except (MemoryError, OSError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise UserError(_how_to_take_less(settings, directory)) from error
        raise


def _how_to_take_less(settings: TuningSettings, directory: RunDirectory) -> str:
    """What to say where memory has run out."""
    ways = [
        "a --batchplan of smaller batches"
        if settings.batchplan
        else "a lower --token-budget (with more --grad-accumulation)",
        "an adapter in place of --full" if settings.full else "a smaller --lora-rank",
    ]
    ways += [] if settings.gradient_checkpointing else ["--gradient-checkpointing"]
    told = f"out of memory. It takes less with {', '.join(ways[:-1])} or {ways[-1]}"
    if settings.online or not (directory.path / CONFIG).is_file():
        return told
    return (
        f"{told}, in another --output.\nThe last checkpoint is whole: --resume --output "
        f"{directory.path} goes on from it where there is more memory"
    )
