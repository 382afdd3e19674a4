"""Flags that name the models which a trained policy is used with."""

from __future__ import annotations

import argparse
from typing import Any

CHANGES = (
    "server",
    "target_model",
    "mutator_model",
    "judge_model",
    "rewriter",
    "batch_size",
    "max_outage",
)


def add_model_flags(parser: argparse.ArgumentParser, *, target: str = "") -> None:
    """Servers and models, as in training where nothing is said; `target` is told of the target."""
    add = parser.add_argument
    default = "default: as in training"
    add("--server", action="append", help=f"auto, embedded or a URL (repeatable; {default})")
    add("--target-model", help=f"model that answers ({default}){target}")
    add("--mutator-model", help=f"model that rewrites ({default})")
    add(
        "--rewriter",
        metavar="PATH",
        help=f"adapter of the embedded model that rewrites: a GGUF, a directory, none ({default})",
    )
    add("--batch-size", help=f"calls at once, or auto ({default})")


def changes(args: argparse.Namespace) -> dict[str, Any]:
    """What the flags would have otherwise than the settings of the run."""
    return {name: getattr(args, name, None) for name in CHANGES}
