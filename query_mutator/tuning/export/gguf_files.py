"""GGUF files: an adapter as llama.cpp loads it, and a base with the adapter in its weights."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from query_mutator.base.errors import UserError, refused
from query_mutator.base.files import PARTIAL, sync
from query_mutator.tuning.export.bases import LONGEST_REASON, ROTATED_IN_PAIRS, Base
from query_mutator.tuning.export.no_form import NoFormError
from query_mutator.tuning.export.peft_adapter import Matrix, PeftAdapter

if TYPE_CHECKING:
    from gguf import GGUFWriter

Layers = dict[str, tuple[Matrix, Matrix]]
"""A and B of each weight, by llama.cpp's name of it, rows in llama.cpp's order."""
WRITTEN_ANEW = {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture"}
WRITTEN_ANEW |= {"general.file_type"}


def layers_for(adapter: PeftAdapter, base: Base) -> Layers:
    """The matrices of an adapter as llama.cpp names and orders them; checked against the base."""
    from gguf import MODEL_ARCH, MODEL_ARCH_NAMES, get_tensor_name_map

    architecture = {name: arch for arch, name in MODEL_ARCH_NAMES.items()}[base.architecture]
    assert isinstance(architecture, MODEL_ARCH)
    names = get_tensor_name_map(architecture, base.blocks)
    layers: Layers = {}
    for layer, matrices in adapter.layers.items():
        name = names.get_name(f"{layer}.weight", try_suffixes=(".weight",))
        if name is None:
            raise NoFormError(f"the adapter changes {layer}, which {base.name} does not have")
        outputs, inputs = matrices.b.shape[0], matrices.a.shape[1]
        if base.shapes is not None and base.shapes.get(name) != (outputs, inputs):
            raise UserError(
                f"the adapter was trained on another model than {base.name}: {layer} is "
                f"{outputs} × {inputs}, not {_size(base.shapes.get(name))}"
            )
        b = matrices.b
        heads = {"attn_q": base.heads, "attn_k": base.kv_heads}.get(name.split(".")[-2])
        if heads and base.architecture in ROTATED_IN_PAIRS:
            if outputs % (2 * heads):
                raise UserError(f"the adapter was trained on another model than {base.name}")
            b = paired(b, heads)
        layers[name] = (matrices.a, b)
    return layers


def paired(rows: Matrix, heads: int) -> Matrix:
    """The rows of q or k with each head's two halves interleaved, as llama.cpp rotates them.

    >>> paired(np.arange(4, dtype=np.float32)[:, None], heads=1).ravel().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, rows.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows.shape))


def write_lora(path: Path, layers: Layers, base: Base, *, alpha: float, half: bool) -> None:
    """Writes the adapter; `half` in two bytes a number."""
    from gguf import GGUFType, Keys

    kind = np.float16 if half else np.float32
    with _writer(path, base.architecture) as writer:
        writer.add_type(GGUFType.ADAPTER)
        writer.add_string(Keys.Adapter.TYPE, "lora")
        writer.add_float32(Keys.Adapter.LORA_ALPHA, alpha)
        for name, (a, b) in layers.items():
            writer.add_tensor(f"{name}.lora_a", np.ascontiguousarray(a.astype(kind)))
            writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(b.astype(kind)))


def write_merged(path: Path, layers: Layers, base: Base, *, scale: float, merged: str) -> None:
    """Writes the base with the adapter added to its weights, those that it changes as `merged`.

    The tokenizer and all else the base says of itself is copied, and so are other weights.
    """
    from gguf import GGMLQuantizationType, GGUFReader, LlamaFileType
    from gguf.quants import dequantize, quantize

    assert base.gguf is not None
    kind = GGMLQuantizationType[merged.upper()]
    reader = GGUFReader(base.gguf)
    with _mergeable(base), _writer(path, base.architecture) as writer:
        _copy_metadata(reader, writer)
        writer.add_file_type(LlamaFileType[f"MOSTLY_{merged.upper()}"])
        for tensor in reader.tensors:
            if tensor.name not in layers:
                data, stored_as = tensor.data, tensor.tensor_type
            else:
                a, b = layers[tensor.name]
                whole = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
                data = quantize(whole + scale * (b @ a), kind)
                stored_as = kind
            writer.add_tensor(tensor.name, data, raw_dtype=stored_as)


@contextlib.contextmanager
def _mergeable(base: Base) -> Iterator[None]:
    """Turns into a line what `gguf` says of weights or metadata that it cannot write."""
    try:
        yield
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:  # an odd file fails in a dozen ways
        reason = " ".join(str(error).split())[:LONGEST_REASON]
        raise UserError(
            f"{base.gguf} cannot be merged with an adapter: {reason}.\n"
            "Leave out the merged model, or give a base in f16 or q8_0"
        ) from error


def _copy_metadata(reader: Any, writer: GGUFWriter) -> None:
    from gguf import GGUFValueType

    for field in reader.fields.values():
        if field.name in WRITTEN_ANEW:
            continue
        kind = field.types[0]
        part = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=part)


@contextlib.contextmanager
def _writer(path: Path, architecture: str) -> Iterator[GGUFWriter]:
    """What writes a GGUF whole or not at all."""
    from gguf import GGUFWriter

    partial = path.with_name(f".{path.name}{PARTIAL}")
    with refused(f"cannot write {path}"):
        try:
            writer = GGUFWriter(partial, architecture)
            try:
                yield writer
                writer.write_header_to_file()
                writer.write_kv_data_to_file()
                writer.write_tensors_to_file()
            finally:
                writer.close()
            _check_whole(partial)
            sync(partial)
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
    sync(path.parent)


def _check_whole(path: Path) -> None:
    """Raises where a full disk has cut the file: numpy does not tell of it."""
    from gguf import GGUFReader

    try:
        GGUFReader(path)
    except (ValueError, IndexError) as error:
        raise OSError(errno.ENOSPC, "the disk is full", str(path)) from error


def _size(shape: tuple[int, int] | None) -> str:
    return f"{shape[0]} × {shape[1]}" if shape else "there"
