"""What is trained of a model: a LoRA adapter, or all its weights."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from query_mutator.base.files import replaced_directory, write_atomically
from query_mutator.tuning.base_model import BaseModel
from query_mutator.tuning.settings import TuningSettings

ADAPTER = "adapter"
FULL_MODEL = "model"


class Trained:
    """A model with the weights of it that are trained."""

    def __init__(self, base: BaseModel, settings: TuningSettings) -> None:
        self.base = base
        self.is_full = settings.full
        self._wrapped: Any = None if settings.full else _with_adapter(base, settings)

    @property
    def directory_name(self) -> str:
        """Where in a rewriter's directory its weights are."""
        return FULL_MODEL if self.is_full else ADAPTER

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """The weights that are trained, by name."""
        return {
            name: parameter
            for name, parameter in self.base.model.named_parameters()
            if parameter.requires_grad
        }

    def save(self, directory: Path) -> None:
        """Writes the trained weights, as peft or transformers read them, whole or not at all."""
        with replaced_directory(directory) as new:
            if self.is_full:
                self.base.model.save_pretrained(new)
                self.base.tokenizer.save_pretrained(new)
                return
            # Left to itself, peft asks the hub whether the vocabulary has grown.
            self._wrapped.save_pretrained(new, save_embedding_layers=False)
            (new / "README.md").unlink(missing_ok=True)  # peft's form, not filled in


def _with_adapter(base: BaseModel, settings: TuningSettings) -> Any:
    import peft

    config = peft.LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    wrapped = peft.get_peft_model(base.model, config)
    config.base_model_name_or_path = base.name
    return wrapped
