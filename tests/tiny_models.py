"""Language models of a few thousand weights, made in a second: with a tokenizer, as on a hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

CHAT = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def make_tokenizer(directory: Path, *, chat: bool = True) -> Any:
    """A byte-level tokenizer with the marks of ChatML, in a directory."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT if chat else None,
    )
    fast.save_pretrained(directory)
    return fast


def make_llama(directory: Path, *, chat: bool = True, seed: int = 0, **changes: Any) -> Path:
    """A Llama of two layers with random weights, in a directory."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer(directory, chat=chat)
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": True,
    }
    torch.manual_seed(seed)
    LlamaForCausalLM(LlamaConfig(**settings | changes)).save_pretrained(directory)
    return directory


def make_model(directory: Path, kind: str, *, seed: int = 0, **changes: Any) -> Path:
    """The same of another kind, by transformers' name for it."""
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = make_tokenizer(directory)
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "bos_token_id": tokenizer.eos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    torch.manual_seed(seed)
    config = AutoConfig.for_model(kind, **settings | changes)
    AutoModelForCausalLM.from_config(config).save_pretrained(directory)
    return directory
