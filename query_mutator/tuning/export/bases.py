"""The model that an adapter belongs to: what its GGUF, or its directory, says of its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.weights import EMBEDDED, gguf_path
from query_mutator.tuning.export.no_form import NoFormError

NAME_OF_EMBEDDED = "SmolLM2-135M-Instruct"
OLLAMA_NAME_OF_EMBEDDED = "smollm2:135m"
ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
"""llama.cpp's name for each kind of model that transformers knows; others are refused."""
ROTATED_IN_PAIRS = {"llama"}
"""Where llama.cpp turns neighbouring rows of q and k, and transformers the two halves of a head."""

MOST_BLOCKS, MOST_HEADS = 1_000, 4_096
"""More than any model has: the names of all blocks are made, and a file could claim billions."""
LONGEST_REASON, LONGEST_SHOWN = 200, 40


@dataclass(frozen=True)
class Base:
    """What has to be known of a model to write an adapter for it."""

    name: str
    architecture: str
    blocks: int
    heads: int
    kv_heads: int
    chat_template: str
    licence: str = ""
    gguf: Path | None = None
    shapes: dict[str, tuple[int, int]] | None = None
    """Outputs and inputs of each weight, where the base is a GGUF."""
    ollama: str = ""
    """What Ollama is told to build on."""


def find_base(base: str) -> Base:
    """`embedded`, a GGUF, a directory of transformers', or a hub's name that is on this machine."""
    if base == EMBEDDED:
        return _of_gguf(gguf_path(), NAME_OF_EMBEDDED, ollama=OLLAMA_NAME_OF_EMBEDDED)
    path = Path(base).expanduser()
    if path.is_file():
        return _of_gguf(path, path.name, ollama=str(path.resolve()))
    return _of_transformers(base, path)


def _of_gguf(path: Path, name: str, *, ollama: str) -> Base:
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
        values = {key: reader.fields[key].contents() for key in _wanted(reader)}
        architecture = str(values.get("general.architecture"))
        if architecture not in ARCHITECTURES.values():
            raise _unknown(name, architecture[:LONGEST_SHOWN])
        heads = _whole(values, f"{architecture}.attention.head_count", MOST_HEADS)
        kv_heads = f"{architecture}.attention.head_count_kv"
        return Base(
            name,
            architecture,
            _whole(values, f"{architecture}.block_count", MOST_BLOCKS),
            heads,
            _whole({kv_heads: heads} | values, kv_heads, heads),
            str(values.get("tokenizer.chat_template", "")),
            str(values.get("general.license", "")),
            path,
            {
                tensor.name: (int(tensor.shape[1]), int(tensor.shape[0]))
                for tensor in reader.tensors
                if len(tensor.shape) == 2
            },
            ollama,
        )
    except UserError:
        raise
    except Exception as error:  # a damaged file fails in a dozen ways
        reason = " ".join(str(error).split())[:LONGEST_REASON]
        raise UserError(f"{path} is not a GGUF file that can be read: {reason}") from None


def _whole(values: Mapping[str, Any], key: str, most: int) -> int:
    """The whole number of that name, from 1 to `most`; `ValueError` for anything else."""
    value = values.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return value
    told = f"is {str(value)[:LONGEST_SHOWN]!r}" if key in values else "is missing"
    raise ValueError(f"{key} {told}, and must be a whole number from 1 to {most:,}")


def _wanted(reader: Any) -> list[str]:
    parts = ("general.", "tokenizer.chat_template", ".block_count", ".attention.head_count")
    return [key for key in reader.fields if any(part in key for part in parts)]


def _of_transformers(base: str, path: Path) -> Base:
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(base, local_files_only=True)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:200]
        raise UserError(
            f"--base {base} is neither {EMBEDDED}, nor a GGUF, nor a model on this machine: "
            f"{reason}"
        ) from error
    if config.model_type not in ARCHITECTURES:
        raise _unknown(base, config.model_type)
    try:
        template = AutoTokenizer.from_pretrained(base, local_files_only=True).chat_template
    except (OSError, ValueError):
        template = None
    is_directory = path.is_dir()
    return Base(
        path.name if is_directory else base,
        ARCHITECTURES[config.model_type],
        int(config.num_hidden_layers),
        int(config.num_attention_heads),
        int(config.num_key_value_heads),
        template if isinstance(template, str) else "",
        ollama=str(path.resolve() if is_directory else _snapshot(base)),
    )


def _snapshot(name: str) -> Path:
    """Where the hub's cache has a model: Ollama takes a name for one of its own library."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(name, "config.json")
    if not isinstance(config, str):
        raise UserError(f"{name} is not whole in the hub's cache: give a directory as the base")
    return Path(config).parent


def _unknown(name: str, architecture: str) -> NoFormError:
    known = ", ".join(sorted(ARCHITECTURES))
    return NoFormError(f"{name}: adapters of {architecture} are not exported; of {known} they are")
