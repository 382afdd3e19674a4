"""What is trained of a model: a LoRA adapter, or all its weights."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError

from query_mutator.base.adapter_files import PEFT_CONFIG, PEFT_DIRECTORY, PEFT_WEIGHTS
from query_mutator.base.errors import UserError
from query_mutator.base.files import replaced_directory
from query_mutator.tuning.base_model import BaseModel, place_of, quiet_transformers
from query_mutator.tuning.settings import TuningSettings

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
        return FULL_MODEL if self.is_full else PEFT_DIRECTORY

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
                _save_model(self.base, new)
            else:
                self._save_adapter(new)

    def _save_adapter(self, directory: Path) -> None:
        import peft

        config = self._wrapped.peft_config["default"].to_dict() | {"inference_mode": True}
        # Sets have another order in every process.
        plain = {k: sorted(v) if isinstance(v, set) else v for k, v in config.items()}
        text = json.dumps(plain, indent=2, sort_keys=True)
        (directory / PEFT_CONFIG).write_text(text + "\n", encoding="utf-8")
        # Left to decide about embeddings, peft asks the hub whether the vocabulary has grown.
        weights = peft.get_peft_model_state_dict(self._wrapped, save_embedding_layers=False)
        kept = {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}
        content = safetensors.torch.save(kept, {"format": "pt"})
        (directory / PEFT_WEIGHTS).write_bytes(content)


def _with_adapter(base: BaseModel, settings: TuningSettings) -> Any:
    import peft

    config = peft.LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    try:
        wrapped = peft.get_peft_model(base.model, config)
    except ValueError as error:
        raise UserError(
            f"the model {base.name} takes no adapter: {str(error)[:200]}.\nTrain it with --full"
        ) from error
    config.base_model_name_or_path = base.name
    return wrapped


def _save_model(base: BaseModel, directory: Path) -> None:
    import transformers

    place = place_of(base.name)
    with quiet_transformers():
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(place.source, **place.options)
        try:
            base.model.save_pretrained(directory)
        except SafetensorError as error:  # it tells an error of the system in its text alone
            raise OSError(errno.ENOSPC, str(error)[:200], str(directory)) from error
        tokenizer.save_pretrained(directory)
