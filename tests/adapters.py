"""LoRA adapters made on the spot, and the embedded model as torch has it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch

from query_mutator.base.weights import gguf_path


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
    directory: Path, model: Any, *, rank: int = 4, size: float = 1.0, **options: Any
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
            target_modules="all-linear",
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
