"""Batches on disk: `epoch_N/batch_000000.npz`, and a `manifest.json` that tells what is whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from batching.core import BatchSpec, Sample
from batching.generation.batches import CollatedBatch, collate
from batching.planning import BatchPlan
from query_mutator.base.closing import Closing
from query_mutator.base.errors import UserError, refused
from query_mutator.base.files import PARTIAL, remove_partial, write_atomically
from query_mutator.base.locks import LOCK, only_writer
from query_mutator.base.stored import stored_as
from query_mutator.base.terminal import counted
from query_mutator.base.untrusted import DEEPEST, open_file, parse_json, read_text

MANIFEST = "manifest.json"
VERSION = 1
LARGEST_BATCH_BYTES = 1 << 30
MOST_BATCHES = 10_000_000
MANIFEST_LINE_BYTES = 128
"""More than what a manifest holds of a batch, or of an epoch."""


def batch_file(epoch: int, index: int) -> str:
    """The name of a batch's file within the directory."""
    return f"epoch_{epoch}/batch_{index:06d}.npz"


@dataclass(frozen=True)
class Manifest:
    """What a directory of batches holds."""

    plan_fingerprint: str
    tokenizer_hash: str
    pad_id: int
    num_batches: tuple[int, ...]
    """Of each epoch."""
    sha256: tuple[tuple[str, ...], ...] | None = None
    """The digest of each batch's file, by epoch; None until all are written."""
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ValueError(f"its version is {self.version!r}, and {VERSION} is known")
        if min(self.num_batches, default=0) < 0:
            raise ValueError("num_batches holds a number below 0")
        if self.sha256 is not None and self.num_batches != tuple(map(len, self.sha256)):
            raise ValueError("it has not one digest for each batch")

    def write(self, directory: Path) -> None:
        """Writes it whole or not at all."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        content = json.dumps(values).encode() + b"\n"
        write_atomically(directory / MANIFEST, lambda file: file.write(content))

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """The manifest of a directory; `UserError` where it has none, or a damaged one."""
        path = directory / MANIFEST
        if directory.is_dir() and not path.exists():
            raise UserError(f"{directory} holds no batches (no {MANIFEST}); generate them there")
        text = read_text(path, "the batches", most_bytes=MOST_BATCHES * MANIFEST_LINE_BYTES)
        try:
            values = parse_json(text, deepest=DEEPEST, most_values=2 * MOST_BATCHES)
            return stored_as(cls, values)
        except ValueError as error:
            raise UserError(
                f"{path} is damaged: {error}; generate the batches again in another place"
            ) from error

    def all_batches(self) -> Iterator[tuple[int, int]]:
        """The epoch and the index of every batch."""
        for epoch, count in enumerate(self.num_batches):
            for index in range(count):
                yield epoch, index


class BatchWriter(Closing):
    """Writes the batches of a plan; one that was killed is gone on with by `resume`.

    A batch's file is written whole or not at all, and stays. The manifest has the digests only
    once all batches are there: until then a reader is told that they are not.
    """

    def __init__(
        self,
        directory: str | Path,
        plan: BatchPlan,
        *,
        pad_id: int = 0,
        resume: bool = False,
        samples: Mapping[str, Sample] | None = None,
    ) -> None:
        """With `samples`, batches that are there must be of these; else they are trusted to be."""
        if plan.num_batches + plan.num_epochs > MOST_BATCHES:
            raise UserError(
                f"the plan has {plan.num_batches:,} batches in {counted(plan.num_epochs, 'epoch')};"
                f" at most {MOST_BATCHES:,} go into one directory"
            )
        self.directory = Path(directory)
        self.plan = plan
        self._samples = samples
        self._digests: dict[tuple[int, int], str] = {}
        counts = tuple(len(epoch) for epoch in plan.epochs)
        self._manifest = Manifest(plan.fingerprint, plan.meta.tokenizer_hash, pad_id, counts)
        with refused(f"cannot write batches to {directory}"):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._taken = contextlib.ExitStack()
            self._taken.enter_context(only_writer(self.directory, within=True))
        try:
            self._begin(resume)
        except BaseException:
            self.close()
            raise

    def _begin(self, resume: bool) -> None:
        found = set(os.listdir(self.directory)) - {LOCK}
        names = [name for name in found if not name.endswith(PARTIAL)]
        if not names:
            remove_partial(self.directory)
            self._manifest.write(self.directory)
        elif not resume:
            raise UserError(
                f"{self.directory} is not empty: go on with its batches by --resume, or choose "
                "another directory"
            )
        before = Manifest.read(self.directory)
        if replace(before, sha256=None) != self._manifest:
            raise UserError(
                f"the batches in {self.directory} are of another plan or padding; choose another "
                "directory"
            )
        for epoch in range(len(before.num_batches)):
            folder = self.directory / f"epoch_{epoch}"
            folder.mkdir(exist_ok=True)
            remove_partial(folder)
        for place in before.all_batches():
            with contextlib.suppress(ValueError, FileNotFoundError):
                self._digests[place] = self._digest_of_whole(place, before)

    def _digest_of_whole(self, place: tuple[int, int], manifest: Manifest) -> str:
        """The digest of a batch that is there; `ValueError` where it is not the planned one."""
        content = (self.directory / batch_file(*place)).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        epoch, index = place
        if manifest.sha256 is not None:
            if manifest.sha256[epoch][index] != digest:
                raise ValueError("it was changed")
        elif not _is_planned(CollatedBatch.from_bytes(content), self.plan.epochs[epoch][index]):
            raise ValueError("it is another batch")
        self._check_content(place, content)
        return digest

    def _check_content(self, place: tuple[int, int], content: bytes) -> None:
        """Refuses to go on with batches that were collated from other samples."""
        if self._samples is None:
            return
        epoch, index = place
        expected = collate(self._samples, self.plan.epochs[epoch][index], self._manifest.pad_id)
        if content != expected.to_bytes() and not CollatedBatch.from_bytes(content).same(expected):
            raise UserError(
                f"{self.directory / batch_file(*place)} was written from other data, though of the "
                "same ids and lengths; choose another directory"
            )

    @property
    def num_written(self) -> int:
        """How many batches are there."""
        return len(self._digests)

    def missing(self) -> Iterator[tuple[int, int, BatchSpec]]:
        """Epoch, index and content of each batch that is yet to be written, in order."""
        for epoch, index in self._manifest.all_batches():
            if (epoch, index) not in self._digests:
                yield epoch, index, self.plan.epochs[epoch][index]

    def write(self, epoch: int, index: int, batch: CollatedBatch) -> None:
        """Writes one batch; when this returns, a kill cannot take it away."""
        if not _is_planned(batch, self.plan.epoch(epoch)[index]):
            raise ValueError(f"this is not batch {index} of epoch {epoch}")
        content = batch.to_bytes()
        if len(content) > LARGEST_BATCH_BYTES:
            raise UserError(
                f"batch {index} of epoch {epoch} has {len(content):,} bytes, of which "
                f"{LARGEST_BATCH_BYTES:,} can be read; plan with a smaller token budget"
            )
        path = self.directory / batch_file(epoch, index)
        write_atomically(path, lambda file: file.write(content))
        self._digests[epoch, index] = hashlib.sha256(content).hexdigest()

    def finish(self) -> Manifest:
        """Writes the digests, from which on the batches can be read; all must be there."""
        unwritten = sum(self._manifest.num_batches) - self.num_written
        if unwritten:
            raise ValueError(f"{unwritten} batches are not written")
        digests = tuple(
            tuple(self._digests[epoch, index] for index in range(count))
            for epoch, count in enumerate(self._manifest.num_batches)
        )
        manifest = replace(self._manifest, sha256=digests)
        manifest.write(self.directory)
        return manifest

    def close(self) -> None:
        """Gives the directory free for another writer."""
        self._taken.close()


def _is_planned(batch: CollatedBatch, planned: BatchSpec) -> bool:
    rows = tuple(tuple(name for name, _, _ in row) for row in planned.row_entries())
    shape = (planned.batch_size, planned.max_length)
    return batch.sample_ids == rows and batch.shape == shape


def write_batches(
    directory: str | Path,
    plan: BatchPlan,
    samples: Mapping[str, Sample],
    *,
    pad_id: int = 0,
    resume: bool = False,
    progress: Callable[[int], object] = lambda written: None,
) -> Manifest:
    """Collates and writes all batches of a plan that are not there yet.

    Those that are there must be of the same samples. `progress` is told how many are there, at
    first and after each.
    """
    with BatchWriter(directory, plan, pad_id=pad_id, resume=resume, samples=samples) as writer:
        progress(writer.num_written)
        for epoch, index, batch in writer.missing():
            writer.write(epoch, index, collate(samples, batch, pad_id))
            progress(writer.num_written)
        return writer.finish()


class BatchReader:
    """Reads batches that a `BatchWriter` finished, each checked against the manifest.

    `UserError` for an unfinished directory, for one with files too few or too many, for one of
    another plan than that named, and, when it is read, for a batch that was changed.
    """

    def __init__(self, directory: str | Path, plan: BatchPlan | str | None = None) -> None:
        self.directory = Path(directory)
        self.manifest = Manifest.read(self.directory)
        wanted = plan.fingerprint if isinstance(plan, BatchPlan) else plan
        if wanted is not None and wanted != self.manifest.plan_fingerprint:
            raise UserError(
                f"the batches in {directory} are of plan {self.manifest.plan_fingerprint[:12]}, "
                f"not of {wanted[:12]}; generate them from the plan in another directory"
            )
        if self.manifest.sha256 is None:
            written = sum(not name.endswith(PARTIAL) for name in self._found())
            raise UserError(
                f"the batches in {directory} are unfinished: {written:,} of "
                f"{self.num_batches:,} are written; go on with the same command and --resume"
            )
        self._check_files()

    @property
    def num_epochs(self) -> int:
        """The number of epochs."""
        return len(self.manifest.num_batches)

    @property
    def num_batches(self) -> int:
        """The number of batches in all epochs."""
        return sum(self.manifest.num_batches)

    def read(self, epoch: int, index: int) -> CollatedBatch:
        """One batch."""
        if not 0 <= epoch < self.num_epochs or not 0 <= index < self.manifest.num_batches[epoch]:
            raise ValueError(f"there is no batch {index} in epoch {epoch}")
        assert self.manifest.sha256 is not None
        path = self.directory / batch_file(epoch, index)
        with open_file(path, "the batch") as file:
            content = file.read(LARGEST_BATCH_BYTES + 1)
        if hashlib.sha256(content).hexdigest() != self.manifest.sha256[epoch][index]:
            raise UserError(
                f"{path} was changed after it was written; generate the batches again with --resume"
            )
        try:
            return CollatedBatch.from_bytes(content)
        except ValueError as error:
            raise UserError(f"{path} is damaged: {error}") from error

    def iter_epoch(self, epoch: int = 0) -> Iterator[CollatedBatch]:
        """The batches of an epoch, in order."""
        return self.iter_from(epoch, 0)

    def iter_from(self, epoch: int, index: int) -> Iterator[CollatedBatch]:
        """What `iter_epoch` gives from its batch `index` on: how a run goes on after a stop."""
        if not 0 <= epoch < self.num_epochs:
            raise ValueError(f"there is no epoch {epoch}")
        count = self.manifest.num_batches[epoch]
        if not 0 <= index <= count:
            raise ValueError(f"epoch {epoch} has {count} batches; none at {index}")
        return (self.read(epoch, number) for number in range(index, count))

    def verify(self) -> None:
        """Reads every batch; `UserError` at the first that is not as it was written."""
        for epoch, index in self.manifest.all_batches():
            self.read(epoch, index)

    def _found(self) -> set[str]:
        """All files in the folders of epochs."""
        folders = [path for path in self.directory.glob("epoch_*") if path.is_dir()]
        return {f"{folder.name}/{name}" for folder in folders for name in os.listdir(folder)}

    def _check_files(self) -> None:
        expected = {batch_file(*place) for place in self.manifest.all_batches()}
        found = self._found()
        for kind, names, advice in (
            ("missing file", expected - found, "generate the batches again with --resume"),
            ("extra file", found - expected, "remove what the plan has not"),
        ):
            if names:
                which = f"{counted(len(names), kind)}, first {min(names)}"
                raise UserError(f"{self.directory}: {which}; {advice}")
