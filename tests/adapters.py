"""LoRA adapters made on the spot, and the embedded model as torch has it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from query_mutator.base.weights import gguf_path
from query_mutator.tuning.export import export_adapter


@functools.cache
def embedded_in_torch() -> Any:
    """The embedded model, its weights as llama.cpp has them."""
    from transformers import AutoModelForCausalLM

    file = gguf_path()
    model = AutoModelForCausalLM.from_pretrained(
        str(file.parent), gguf_file=file.name, dtype=torch.float32
    )
    return model.eval()


@functools.cache
def embedded_tokenizer() -> Any:
    """Its tokenizer, chat template and all."""
    from transformers import AutoTokenizer

    file = gguf_path()
    return AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)


def save_adapter(
    directory: Path,
    model: Any,
    *,
    rank: int = 4,
    size: float = 1.0,
    layers: str | list[str] = "all-linear",
    **options: Any,
) -> Path:
    """Saves an adapter of random weights that changes what the model says; returns its directory.

    `size` is how much of PEFT's random B is kept.
    """
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(7)
    wrapped = get_peft_model(
        model,
        LoraConfig(
            r=rank,
            lora_alpha=2 * rank,
            target_modules=layers,
            task_type="CAUSAL_LM",
            init_lora_weights=False,
            **options,
        ),
    )
    with torch.no_grad():
        for name, weight in wrapped.named_parameters():
            if "lora_B" in name:
                weight.mul_(size)
    wrapped.save_pretrained(str(directory))
    wrapped.unload()
    return directory


def rewriter_directory(directory: Path, *, seed: int = 1, size: float = 0.02) -> Path:
    """What a trainer leaves, with random weights for the embedded model, made without torch."""
    from safetensors.numpy import save_file

    rng = np.random.default_rng(seed)
    adapter = directory / "adapter"
    adapter.mkdir(parents=True)
    tensors: dict[str, Any] = {}
    for block in range(0, 30, 3):
        for part, (outputs, inputs) in {"mlp.down": (576, 1536), "self_attn.q": (576, 576)}.items():
            name = f"base_model.model.model.layers.{block}.{part}_proj"
            a, b = rng.normal(size=(2, inputs)), rng.normal(size=(outputs, 2))
            tensors[f"{name}.lora_A.weight"] = (a * inputs**-0.5).astype(np.float32)
            tensors[f"{name}.lora_B.weight"] = (b * size).astype(np.float32)
    save_file(tensors, adapter / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 64, "bias": "none"}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    export_adapter(adapter, "embedded", directory)
    return directory
