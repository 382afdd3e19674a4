"""A PEFT adapter on the disk as plain matrices; what a GGUF cannot say is refused."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from query_mutator.base.adapter_files import PEFT_CONFIG, PEFT_WEIGHTS
from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import parse_json, read_text
from query_mutator.tuning.export.no_form import NoFormError

if TYPE_CHECKING:
    import torch

WRAPPING = "base_model.model."
"""What PEFT puts in front of the base model's own names."""
SIDES = {".lora_A.weight": 0, ".lora_B.weight": 1}
REFUSED = {
    "use_dora": "DoRA",
    "lora_bias": "a bias of its own",
    "fan_in_fan_out": "transposed layers",
    "modules_to_save": "whole layers beside the adapter (modules_to_save)",
    "rank_pattern": "layers of different rank (rank_pattern)",
    "alpha_pattern": "layers of different alpha (alpha_pattern)",
    "layer_replication": "repeated layers",
    "trainable_token_indices": "trained tokens",
    "alora_invocation_tokens": "activation by tokens (aLoRA)",
}
"""Settings of PEFT that change the sum W + scale · B · A, by what they stand for."""

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LoraLayer:
    """One adapted layer: its weights become W + scale · B · A."""

    a: Matrix
    """Rank by inputs."""
    b: Matrix
    """Outputs by rank."""


@dataclass(frozen=True)
class PeftAdapter:
    """The matrices of an adapter, by the base model's name of the layer."""

    layers: dict[str, LoraLayer]
    rank: int
    alpha: float
    """So that alpha / rank is the scale, as llama.cpp has it."""

    @property
    def scale(self) -> float:
        """What B · A is multiplied by."""
        return self.alpha / self.rank


def read_adapter(directory: Path) -> PeftAdapter:
    """The adapter that PEFT saved to a directory; `UserError` for what is none."""
    config = _config(directory)
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if type(rank) is not int or rank < 1 or not isinstance(alpha, int | float):
        raise UserError(f"{directory / PEFT_CONFIG} names no rank (r) and alpha (lora_alpha)")
    for key, what in REFUSED.items():
        if config.get(key):
            raise NoFormError(f"{directory}: an adapter with {what} has no form as a GGUF")
    if config.get("bias", "none") != "none":
        raise NoFormError(f"{directory}: an adapter that trains biases has no form as a GGUF")
    # Rank-stabilised LoRA divides by the root of the rank, llama.cpp always by the rank.
    scaled = float(alpha) * (math.sqrt(rank) if config.get("use_rslora") else 1.0)
    return PeftAdapter(_layers(directory, rank), rank, scaled)


def _config(directory: Path) -> dict[str, Any]:
    file = directory / PEFT_CONFIG
    if not file.is_file():
        raise UserError(f"{directory} holds no adapter (no {PEFT_CONFIG}); name what PEFT saved")
    try:
        config = parse_json(read_text(file, "the adapter's settings"))
    except (ValueError, json.JSONDecodeError) as error:
        raise UserError(f"{file} is not a JSON file: {str(error)[:200]}") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise UserError(f"{file} is not of a LoRA adapter; only those have a form as a GGUF")
    return config


def _layers(directory: Path, rank: int) -> dict[str, LoraLayer]:
    from safetensors import SafetensorError, safe_open

    file = directory / PEFT_WEIGHTS
    halves: dict[str, list[Matrix | None]] = {}
    try:
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - no mapping
                layer, side = _place(directory, name)
                halves.setdefault(layer, [None, None])[side] = _matrix(tensors.get_tensor(name))
    except (OSError, SafetensorError) as error:
        raise UserError(f"cannot read the adapter {file}: {str(error)[:200]}") from error
    layers = {}
    for layer, (a, b) in halves.items():
        if a is None or b is None or a.shape[0] != rank or b.shape[1] != rank:
            raise UserError(f"{file} is damaged: {layer} has no two matrices of rank {rank}")
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise UserError(f"{file}: {layer} holds numbers that are none; train it again")
        layers[layer] = LoraLayer(a, b)
    if not layers:
        raise UserError(f"{file} holds no LoRA matrices")
    return layers


def _place(directory: Path, name: str) -> tuple[str, int]:
    """The layer that a tensor belongs to, and which of its two matrices it is."""
    for suffix, side in SIDES.items():
        if name.endswith(suffix):
            return name.removesuffix(suffix).removeprefix(WRAPPING), side
    raise NoFormError(
        f"{directory}: an adapter of {name} has no form as a GGUF; adapt linear layers only"
    )


def _matrix(tensor: torch.Tensor) -> Matrix:
    if tensor.ndim != 2:
        raise NoFormError(f"an adapter of {tensor.ndim} dimensions has no form as a GGUF")
    return np.ascontiguousarray(tensor.float().numpy())
