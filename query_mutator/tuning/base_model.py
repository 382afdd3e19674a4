"""The model that is trained, and its tokenizer: embedded, from a directory, or from the hub."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from query_mutator.base.errors import UserError
from query_mutator.base.weights import gguf_path
from query_mutator.tuning.settings import EMBEDDED

GGUF = ".gguf"
LONGEST_REASON = 200


@dataclass(frozen=True)
class BaseModel:
    """A causal language model of transformers, with the tokenizer that goes with it."""

    name: str
    """As the user named it."""
    model: Any
    tokenizer: Any

    @property
    def hidden(self) -> Any:
        """The model without its last layer."""
        return self.model.get_decoder()

    @property
    def is_recurrent(self) -> bool:
        """Whether a layer carries a state from token to token, over the borders of samples."""
        kinds = set(getattr(self.model.config, "layer_types", None) or ())
        return bool(kinds - ATTENTION_KINDS) or any(
            isinstance(module, torch.nn.Conv1d | torch.nn.RNNBase) or _carries_state(module)
            for module in self.model.modules()
        )


ATTENTION_KINDS = {"full_attention", "sliding_attention", "chunked_attention"}
STATEFUL = ("mamba", "ssm", "rwkv", "recurrent", "deltanet", "retention", "shortconv")
"""What the classes of layers with a state have in their names."""


def load_base_model(name: str, dtype: torch.dtype) -> BaseModel:
    """The model of that name; `UserError` says in a line why there is none."""
    import transformers

    source, options = _place(name)
    with _quiet(transformers), _told(name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
        model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=dtype, **options)
    model.config.use_cache = False
    return BaseModel(name, model, tokenizer)


def _place(name: str) -> tuple[str, dict[str, Any]]:
    """What transformers calls the model, and how it is to be read."""
    path = gguf_path() if name == EMBEDDED else Path(name)
    if path.is_file():
        if path.suffix.lower() != GGUF:
            raise UserError(f"--model {name} is a file and no GGUF: name the directory of a model")
        return str(path.parent), {"gguf_file": path.name}
    if path.is_dir() and not (path / "config.json").is_file():
        raise UserError(f"--model {name} is a directory without a model: it has no config.json")
    return name, {}


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """Turns whatever a library raises over a model into a line."""
    try:
        yield
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # transformers raises all kinds, for want of a file as for its sense
        if not Path(name).exists() and name != EMBEDDED:
            raise UserError(
                f"there is no model {name!r}: no such directory, and it is neither in the local "
                "cache of the hub nor to be had from there.\n"
                f"Give {EMBEDDED}, a directory, or a hub name that can be reached"
            ) from error
        reason = " ".join(str(error).split())[:LONGEST_REASON]
        raise UserError(f"cannot load the model {name}: {reason or type(error).__name__}") from error


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Has transformers load without bars and without advice for programmers."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _carries_state(module: torch.nn.Module) -> bool:
    return any(word in type(module).__name__.lower() for word in STATEFUL)


@functools.cache
def multiplies_in_bfloat16() -> bool:
    """Whether the processor that trains has units for bfloat16: elsewhere it is slower."""
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    cpu: Any = torch.cpu
    return bool(cpu._is_avx512_bf16_supported() or cpu._is_amx_tile_supported())
