"""Every flag of `train-mutator`, defined once: its name, default, help, group and limits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.flags import (
    check_bounds,
    flag,
    grouped_parser,
    option_of,
    parsed,
    whole_number,
)
from query_mutator.base.weights import EMBEDDED

AUTO, FLOAT32, BFLOAT16 = "auto", "float32", "bfloat16"
COSINE, LINEAR, CONSTANT = "cosine", "linear", "constant"
CHOICES = {
    "dtype": (AUTO, FLOAT32, BFLOAT16),
    "schedule": (COSINE, LINEAR, CONSTANT),
}
EXCLUSIVE = {
    "full": (("merged",), "what is merged is an adapter, and all weights are a whole model"),
    "online": (
        ("batchplan", "pairs", "generated", "keep_clear", "as_typed", "epochs"),
        "it learns what comes, in batches made as it comes",
    ),
    "data": (("pairs", "generated", "keep_clear", "as_typed"), "its rows are learned as they are"),
    "batchplan": (
        ("pack", "pack_max_len", "bucket_edges", "token_budget", "validation_share"),
        "the plan says what is in its batches, and that is all the data",
    ),
}
"""Flags that others leave without a meaning: refused beside them, with the reason."""
OF_PUZZLES = ("gym_host", "gym_port", "episodes")
"""Flags of a puzzle server, which is asked with --online, and where no run is followed."""
MERGED_TYPES = ("q8_0", "q4_0", "f16")
LORA_LEARNING_RATE, FULL_LEARNING_RATE = 1e-3, 5e-5
DEFAULT_PACK_MAX_LEN = DEFAULT_TOKEN_BUDGET = 2048
DEFAULT_GYM_HOST, DEFAULT_GYM_PORT = "localhost", 8023

GROUPS = {
    "model": "the model",
    "pairs": "what it learns from",
    "batchplan": "batches",
    "epochs": "learning",
    "output": "the run",
}
"""What --help calls the flags, from which one on."""


@dataclass(frozen=True)
class TuningSettings:
    """The settings of the training of a rewriter."""

    model: str = flag(
        EMBEDDED,
        "the model that is trained: embedded, a directory of Hugging Face, a GGUF, or a hub name",
    )
    full: bool = flag(False, "train all weights in place of a LoRA adapter")
    lora_rank: int = flag(16, "rank of the adapter", at_least=1, at_most=1024)
    lora_alpha: int = flag(32, "the adapter counts alpha / rank times", at_least=1, at_most=4096)
    lora_dropout: float = flag(0.0, "dropout before the adapter", at_least=0, at_most=0.9)

    pairs: list[str] = flag(  # noqa: RUF009 - a field() with a default_factory
        [],
        "JSONL, CSV or Parquet with typed,meant or question,rewrite or prompt,completion, in place "
        "of the shipped pairs (repeatable)",
        metavar="FILE",
    )
    from_: list[str] = flag(  # noqa: RUF009 - a field() with a default_factory
        [],
        "a run of which the faithful rewrites with a gain are learned, in place of the shipped "
        "pairs (repeatable)",
        metavar="RUN",
    )
    data: str | None = flag(
        None,
        "any data to fine-tune on: JSONL, CSV or Parquet with text, prompt and completion, "
        "instruction and response, or messages",
        parse=str,
    )
    online: bool = flag(
        False, "learn from what comes: a run still going (--from) or a puzzle server (--gym-host)"
    )
    gym_host: str = flag(DEFAULT_GYM_HOST, "the puzzle server of --online")
    gym_port: int = flag(DEFAULT_GYM_PORT, "its port", at_least=1, at_most=65535)
    episodes: int = flag(100, "puzzles that are played with --online", at_least=1)
    generated: float = flag(
        0.0,
        "messy variants made of each clear question, others in every epoch; 0.5: of every second",
        at_least=0,
    )
    keep_clear: float = flag(
        0.2,
        "share of the pairs that teach to leave a clear question alone",
        at_least=0,
        at_most=0.9,
    )
    as_typed: float = flag(
        0.25,
        "share of the pairs that are learned as they were typed; the others after the edits that "
        "the operator makes before it asks (1: for a model that other programs ask too)",
        at_least=0,
        at_most=1,
    )
    validation_share: float = flag(
        0.05,
        "share of the pairs, split by meaning, that is not trained on",
        at_least=0,
        at_most=0.5,
    )

    batchplan: str | None = flag(None, "take the batches of this plan", parse=str)
    bucket_edges: str | None = flag(
        None, "rows of like lengths together, such as 128,256,512", parse=str
    )
    token_budget: int | None = flag(
        None,
        "tokens in a batch at most, padding included (default 2048, or what a row can have)",
        parse=whole_number,
        at_least=1,
    )
    pack: bool = flag(False, "several samples in a row (default where nothing else is asked for)")
    pack_max_len: int = flag(DEFAULT_PACK_MAX_LEN, "tokens in such a row at most", at_least=1)
    grad_accumulation: int = flag(1, "batches for each step of the optimizer", at_least=1)

    epochs: int = flag(3, "times that all pairs are seen", at_least=1)
    lr: float | None = flag(
        None,
        f"learning rate (default {LORA_LEARNING_RATE:g}, with --full {FULL_LEARNING_RATE:g})",
        parse=float,
        above=0,
        at_most=10,
    )
    schedule: str = flag(COSINE, "how the learning rate falls to 0: cosine, linear or constant")
    warmup: float = flag(0.05, "share of the steps in which it rises", at_least=0, at_most=1)
    weight_decay: float = flag(0.0, "of AdamW", at_least=0, at_most=1)
    max_grad_norm: float = flag(1.0, "longer gradients are cut to this length", above=0)
    gradient_checkpointing: bool = flag(
        False, "take less memory and a third more time: compute again what the gradients need"
    )
    dtype: str = flag(
        AUTO, "float32, bfloat16 or auto: bfloat16 where the processor multiplies in it"
    )
    eval_interval: int = flag(
        0, "steps between looks at the held-out pairs (default: four in an epoch)", at_least=0
    )
    patience: int = flag(
        0, "end after so many looks without a lower held-out loss; 0: never", at_least=0
    )
    seed: int = flag(1, "seed of everything random", at_least=0, at_most=2**32 - 1)

    output: str | None = flag(
        None, "directory of the rewriter (default: rewriters/ and the time)", parse=str
    )
    merged: str | None = flag(
        None, "also write the whole model as one GGUF: q8_0, q4_0 or f16", parse=str
    )
    resume: bool = flag(False, "go on from the last checkpoint of --output")
    save_interval: int = flag(50, "steps between checkpoints", at_least=1)

    @property
    def learning_rate(self) -> float:
        """The learning rate after warm-up."""
        return self.lr or (FULL_LEARNING_RATE if self.full else LORA_LEARNING_RATE)

    def stored(self) -> dict[str, Any]:
        """What config.json keeps."""
        return {key: value for key, value in asdict(self).items() if key not in NOT_STORED}


NOT_STORED = {"output", "resume"}
"""Settings of one call of the command."""


def build_parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    """The command line of `TuningSettings`, in groups."""
    return grouped_parser(TuningSettings, GROUPS, prog, description)


def parse_settings(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> TuningSettings:
    """The settings of a command line."""
    given = vars(parser.parse_args(argv))
    settings = settings_of(given)
    # By name: what says the same as the default is given too.
    idle = next((name for name in OF_PUZZLES if name in given), None)
    if idle and not settings.online:
        raise UserError(f"{option_of(idle)} is for --online: without it no puzzle server is asked")
    if idle and settings.from_:
        raise UserError(
            f"--online --from takes no {option_of(idle)}: a run is followed, and no puzzle server"
        )
    return settings


def settings_of(values: dict[str, Any]) -> TuningSettings:
    """The settings in what a command line or a config file holds, checked."""
    by_name = {item.name: item for item in fields(TuningSettings)}
    settings = TuningSettings(
        **{name: parsed(by_name[name], value) for name, value in values.items()}
    )
    check(settings)
    return settings


def check(settings: TuningSettings) -> None:
    """Refuses values that cannot work, with the reason."""
    for item in fields(TuningSettings):
        value = getattr(settings, item.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            check_bounds(item, value)
    for name, choices in CHOICES.items():
        if getattr(settings, name) not in choices:
            raise UserError(
                f"--{name} must be {' or '.join(choices)}, not {getattr(settings, name)}"
            )
    if settings.merged is not None and settings.merged.lower() not in MERGED_TYPES:
        raise UserError(
            f"--merged must be {' or '.join(MERGED_TYPES)}, not {settings.merged[:40]!r}"
        )
    for name, (others, reason) in EXCLUSIVE.items():
        given = [other for other in others if _is_given(settings, other)]
        if given and _is_given(settings, name):
            raise UserError(f"{option_of(name)} takes no {option_of(given[0])}: {reason}")
    if settings.data is not None and settings.from_ and not settings.online:
        raise UserError("--data takes --from with --online alone: its rows are learned as they are")


def _is_given(settings: TuningSettings, name: str) -> bool:
    return bool(getattr(settings, name) != getattr(TuningSettings(), name))
