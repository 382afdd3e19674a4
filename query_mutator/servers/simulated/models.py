"""The models on a simulated server's disk, as it tells of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from query_mutator.servers.simulated.answers import stable_hash
from query_mutator.servers.simulated.dialects import json_bytes

EMBEDDING_LENGTH = 64


def tagged(name: str) -> str:
    """Return a model's name with the tag that Ollama shows it with."""
    return name if ":" in name else f"{name}:latest"


def describe(name: str) -> dict[str, Any]:
    """Return a model's entry in the list of those on disk."""
    bits = stable_hash("model", name)
    family = name.partition(":")[0]
    return {
        "name": tagged(name),
        "model": tagged(name),
        "modified_at": "2026-08-01T00:00:00Z",
        "size": 2_000_000_000 + bits % 1_000_000,
        "digest": f"{bits:016x}" * 4,
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": family,
            "families": [family],
            "parameter_size": "3B",
            "quantization_level": "Q4_K_M",
        },
    }


async def pull_progress(name: str) -> AsyncGenerator[bytes, None]:
    """Return the lines that tell how a model is fetched."""
    entry = describe(name)
    digest, total = f"sha256:{entry['digest']}", entry["size"]
    part = {"status": f"pulling {digest[7:19]}", "digest": digest, "total": total}
    yield json_bytes({"status": "pulling manifest"}) + b"\n"
    for quarter in range(5):
        yield json_bytes(part | {"completed": total * quarter // 4}) + b"\n"
    for status in ("verifying sha256 digest", "writing manifest", "success"):
        yield json_bytes({"status": status}) + b"\n"


def show(name: str, system_prompt: str) -> dict[str, Any]:
    """Return what /api/show tells of a model; a system prompt only where it has one."""
    entry = describe(name)
    said = f"SYSTEM {system_prompt}\n" if system_prompt else ""
    return {
        "modelfile": f"FROM {name}\n{said}",
        **({"system": system_prompt} if system_prompt else {}),
        "parameters": "",
        "template": "{{ .System }} {{ .Prompt }}",
        "details": entry["details"],
        "model_info": {
            "general.architecture": "llama",
            "general.parameter_count": entry["size"] * 2,
            "llama.context_length": 32_768,
            "llama.embedding_length": EMBEDDING_LENGTH,
        },
        "capabilities": ["completion"],
        "modified_at": entry["modified_at"],
    }
