"""What the files of an adapter are called: as peft saves it, and as llama.cpp takes it."""

from __future__ import annotations

PEFT_DIRECTORY = "adapter"
"""Within the directory of a rewriter."""
PEFT_CONFIG, PEFT_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""As peft names them."""
ADAPTER_FILE = "adapter.gguf"
"""What `train-mutator` and `export-adapter` write for servers."""
