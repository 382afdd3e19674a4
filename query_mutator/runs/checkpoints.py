"""Checkpoints: tensors and plain values in one safetensors file, sealed with a digest.

Nothing in such a file is ever run. Damage is found before anything in it is used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from query_mutator.base.errors import UserError, is_out_of_memory
from query_mutator.base.files import remove_partial, write_atomically

logger = logging.getLogger(__name__)

KIND = "query-mutator checkpoint"
VERSION = 1
KEPT = 3
POLICY = "policy."
"""Begins the names of a policy's tensors."""
KEEPER = "keeper"
"""Names, among the plain values, what says which answer to keep."""
STATE = "state"
"""The tensor that holds the plain values, as the bytes of a JSON text: a safetensors header, where
they could also be, is limited in size."""
LARGEST_STATE = 2**30
SUFFIX = ".safetensors"
NAME = re.compile(r"step-(\d{12,16})\.safetensors", re.ASCII)
DAMAGED = ".damaged"


class UnusableCheckpointError(Exception):
    """A file that holds no whole checkpoint, and why; the one before it may."""


@dataclass(frozen=True)
class Checkpoint:
    """All that a run goes on from."""

    tensors: dict[str, torch.Tensor]
    state: dict[str, Any]
    """Plain values, as JSON has them."""


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint whole or not at all."""
    text = json.dumps(checkpoint.state).encode()
    tensors = {name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()}
    tensors[STATE] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    metadata = {"kind": KIND, "version": str(VERSION), "sha256": digest(tensors, VERSION)}
    content = safetensors.torch.save(tensors, metadata)
    write_atomically(path, lambda file: file.write(content))


def read_checkpoint(path: Path, *, tensor_bytes: int) -> Checkpoint:
    """The checkpoint in a file, checked against its digest; at most so much is read.

    Raises `UnusableCheckpointError` for what is damaged or of another kind, and `UserError` for a
    version that is newer than this program.
    """
    content = _content(path, tensor_bytes + LARGEST_STATE)
    try:
        tensors = safetensors.torch.load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = header.get("__metadata__") or {}
    except Exception as error:  # the library raises half a dozen kinds
        raise UnusableCheckpointError(_damage(type(error).__name__)) from error
    if metadata.get("kind") != KIND or STATE not in tensors:
        raise UnusableCheckpointError(_damage("a safetensors file, but not a checkpoint"))
    # Both are checked, so that damage to the version alone does not pass for another version.
    whole = metadata.get("sha256") == digest(tensors, VERSION)
    version = metadata.get("version", "")
    if not whole and re.fullmatch(r"\d{1,9}", version, re.ASCII) and int(version) > VERSION:
        raise UserError(
            f"{path} was written by a newer version of this program (format {version}, this one "
            f"reads {VERSION}); use that version"
        )
    if not whole or version != str(VERSION):
        raise UnusableCheckpointError(_damage("its digest is wrong"))
    return Checkpoint(tensors, _state(tensors.pop(STATE)))


def digest(tensors: dict[str, torch.Tensor], version: int) -> str:
    """The SHA-256 of names, kinds, shapes and contents."""
    sha256 = hashlib.sha256(f"{KIND} {version}\n".encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        head = json.dumps([name, str(tensor.dtype), list(tensor.shape)])
        sha256.update(f"{len(head)} {head}".encode())
        sha256.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return sha256.hexdigest()


class CheckpointStore:
    """The checkpoints of a run, named by step; the last few are kept."""

    def __init__(self, directory: Path, kept: int = KEPT) -> None:
        self.directory = directory
        self._kept = kept

    def path_of(self, step: int) -> Path:
        return self.directory / f"step-{step:012d}{SUFFIX}"

    def paths(self) -> list[Path]:
        """Those there are, the oldest first."""
        try:
            names = [name for name in os.listdir(self.directory) if NAME.fullmatch(name)]
        except OSError:
            return []
        return [self.directory / name for name in sorted(names, key=lambda name: int(name[5:-12]))]

    def save(self, step: int, checkpoint: Checkpoint) -> None:
        """Writes one more; what is older than the last few goes."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        write_checkpoint(self.path_of(step), checkpoint)
        for path in self.paths()[: -self._kept]:
            path.unlink(missing_ok=True)

    def newest(
        self, *, tensor_bytes: int, why_not: Callable[[Checkpoint], str] = lambda _: ""
    ) -> Checkpoint:
        """The last that is whole and that `why_not` says nothing against; a line tells of others.

        Raises `UserError` where there is none.
        """
        passed: list[tuple[Path, str]] = []
        for path in reversed(self.paths()):
            try:
                checkpoint = read_checkpoint(path, tensor_bytes=tensor_bytes)
                if reason := why_not(checkpoint):
                    raise UnusableCheckpointError(reason)
            except FileNotFoundError:  # a run that is under way has dropped it since
                continue
            except UnusableCheckpointError as error:
                passed.append((path, str(error)))
                continue
            for bad, reason in passed:
                logger.warning("%s %s; using the one before it, %s", bad, reason, path.name)
            return checkpoint
        if passed:
            path, reason = passed[0]
            also = f", and {len(passed) - 1} before it are no better" if len(passed) > 1 else ""
            raise UserError(f"no usable checkpoint: {path} {reason}{also}")
        raise UserError(f"{self.directory} holds no checkpoint; is it the run you mean?")

    def tidy(self, step: int) -> None:
        """Puts aside what is later than `step`, which the run goes on from, and half-written files.

        It was passed over as damaged, and must not push out those that are whole.
        """
        remove_partial(self.directory)
        for path in self.paths():
            if int(path.name[5:-12]) > step:
                path.rename(path.with_name(path.name + DAMAGED))


def tensor_bytes(policy: torch.nn.Module) -> int:
    """More than the tensors of a policy's checkpoint take, but for what the environments saw."""
    return 2**20 + 4 * sum(value.nbytes for value in policy.state_dict().values())


def set_policy(policy: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Gives a policy the weights of a checkpoint; raises ValueError where they do not fit."""
    weights = {
        name: tensor_like(tensors, f"{POLICY}{name}", value)
        for name, value in policy.state_dict().items()
    }
    unknown = [
        name for name in tensors if name.startswith(POLICY) and name[len(POLICY) :] not in weights
    ]
    if unknown:
        raise ValueError(f"{unknown[0]} is not of this policy")
    policy.load_state_dict(weights)


@contextmanager
def misfit_told(run: Path) -> Iterator[None]:
    """Turns what goes wrong with values of the wrong kind into a line for the user."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"the checkpoint of {run} does not fit its config.json: {what}; were they changed?"
        ) from error


def tensor_like(tensors: dict[str, torch.Tensor], name: str, like: torch.Tensor) -> torch.Tensor:
    """A copy of the tensor of that name; raises ValueError where it is not like the other."""
    found = tensors.get(name)
    if found is None:
        raise ValueError(f"there is no tensor {name}")
    if found.shape != like.shape or found.dtype != like.dtype:
        raise ValueError(
            f"the tensor {name} is {list(found.shape)} of {found.dtype}, "
            f"not {list(like.shape)} of {like.dtype}"
        )
    return found.clone()  # an optimizer would go on in the checkpoint's own memory


def _content(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise UnusableCheckpointError(_damage(f"{size} bytes are too many"))
            return file.read(size)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnusableCheckpointError(f"cannot be read: {error.strerror}") from error


def _state(stored: torch.Tensor) -> dict[str, Any]:
    if stored.dtype != torch.uint8:
        raise UnusableCheckpointError(_damage("its state is no text"))
    try:
        state = json.loads(stored.numpy().tobytes())
    except (ValueError, RecursionError) as error:
        raise UnusableCheckpointError(_damage("its state is no JSON")) from error
    if not isinstance(state, dict):
        raise UnusableCheckpointError(_damage("its state is no object"))
    return state


def _damage(detail: str) -> str:
    return f"is damaged or of another kind ({detail})"
