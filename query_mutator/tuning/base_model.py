"""The model that is trained, and its tokenizer: embedded, from a directory, or from the hub."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from batching import load_tokenizer
from batching.generation import Tokenizer
from query_mutator.base.errors import UserError
from query_mutator.base.hub import hub_answers, is_hub_name
from query_mutator.base.weights import EMBEDDED, gguf_path
from query_mutator.tuning.settings import AUTO, BFLOAT16, TuningSettings

GGUF = ".gguf"
LONGEST_REASON = 200


@dataclass(frozen=True)
class BaseModel:
    """A causal language model of transformers, with the tokenizer that goes with it."""

    name: str
    """As the user named it."""
    model: Any
    tokenizer: Tokenizer

    @property
    def hidden(self) -> Any:
        """The model without its last layer."""
        return self.model.get_decoder()

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        device: torch.device = next(self.model.parameters()).device
        return device


@dataclass(frozen=True)
class ModelPlace:
    """What transformers calls a model, and how it is to be read."""

    source: str
    options: dict[str, Any]


def load_base_model(name: str, dtype: torch.dtype) -> BaseModel:
    """The model of that name; `UserError` says in a line why there is none."""
    place = place_of(name)
    tokenizer = load_tokenizer(name)
    import transformers

    with quiet_transformers(), _told(name):
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            place.source, dtype=dtype, **place.options
        )
    if "gguf_file" in place.options:
        _forget_gguf(model)
    model.config.use_cache = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = model.get_input_embeddings().weight.shape[0]
    if tokenizer.vocab_size > rows:
        raise UserError(
            f"the tokenizer of {name} has {tokenizer.vocab_size} tokens and the model {rows}: "
            "they do not belong together"
        )
    return BaseModel(name, model.to(device), tokenizer)


def _forget_gguf(model: Any) -> None:
    """Its weights are plain now: saved with a note of the GGUF, they could not be loaded again."""
    for name in ("hf_quantizer", "quantization_method"):
        if hasattr(model, name):
            delattr(model, name)
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def place_of(name: str) -> ModelPlace:
    """Where a model is; `UserError` where there is none."""
    path = gguf_path() if name == EMBEDDED else Path(name)
    if path.is_file():
        if path.suffix.lower() != GGUF:
            raise UserError(f"--model {name} is a file and no GGUF: name the directory of a model")
        return ModelPlace(str(path.parent), {"gguf_file": path.name})
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UserError(f"--model {name} holds no model: it has no config.json")
        return ModelPlace(name, {"local_files_only": True})
    if is_hub_name(name):
        from huggingface_hub import try_to_load_from_cache

        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return ModelPlace(name, {"local_files_only": True})
        if hub_answers():
            return ModelPlace(name, {})
    raise UserError(
        f"there is no model {name!r}: no such directory, not in the local cache of the hub, and "
        f"not to be had from there.\nGive {EMBEDDED}, a directory, or a hub name that is reachable"
    )


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """Turns whatever a library raises over a model into a line."""
    try:
        yield
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # transformers raises all kinds, for want of a file as for its sense
        reason = " ".join(str(error).split())[:LONGEST_REASON]
        raise UserError(
            f"cannot load the model {name}: {reason or type(error).__name__}"
        ) from error


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Has transformers work without bars and without advice for programmers."""
    import transformers

    logging: Any = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def compute_dtype(settings: TuningSettings) -> torch.dtype:
    """The kind of number that `--dtype` asks to multiply in."""
    wanted = settings.dtype
    in_bfloat16 = wanted == BFLOAT16 or (wanted == AUTO and multiplies_in_bfloat16())
    return torch.bfloat16 if in_bfloat16 else torch.float32


def multiplies_in_bfloat16() -> bool:
    """Whether the processor that trains has units for bfloat16: elsewhere it is slower."""
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    cpu: Any = torch.cpu
    return bool(cpu._is_avx512_bf16_supported() or cpu._is_amx_tile_supported())
