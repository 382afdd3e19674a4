"""Collated batches, and batches on disk: nothing is lost, and no change goes unnoticed."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching.core import BatchSpec, Sample
from batching.generation import batch_files
from batching.generation.batch_files import (
    BatchReader,
    BatchWriter,
    Manifest,
    batch_file,
    write_batches,
)
from batching.generation.batches import CollatedBatch, collate
from batching.generation.store import SampleStore
from batching.planning import (
    BatchingConfig,
    BatchPlan,
    BatchPlanBuilder,
    create_segment_attention_mask,
)
from query_mutator.base.errors import UserError
from tests.nightly import examples

PAD = 7
ARRAYS = ("input_ids", "loss_mask", "segment_ids", "position_ids", "lengths")


def some_samples(count: int = 40) -> dict[str, Sample]:
    """Samples of up to 90 tokens, no two tokens alike."""
    made, token = {}, 1000
    for number in range(count):
        size = 1 + (number * 37) % 90
        ids = tuple(range(token, token + size))
        mask = tuple(int(place >= size // 2) for place in range(size))
        made[f"s{number}"] = Sample(ids, mask, meta={"sample_id": f"s{number}"})
        token += size
    return made


def planned(samples: dict[str, Sample], *, epochs: int = 2, seed: int = 42) -> BatchPlan:
    config = BatchingConfig.throughput(256, (32, 64), 96, seed=seed)
    lengths = {name: len(sample) for name, sample in samples.items()}
    return BatchPlanBuilder(lengths, config, tokenizer_hash="hash").build(epochs)


def same(one: CollatedBatch, other: CollatedBatch) -> bool:
    return one.sample_ids == other.sample_ids and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ARRAYS
    )


def other_samples() -> dict[str, Sample]:
    """Samples of the same ids and lengths as `some_samples`, of other tokens."""
    return {
        name: Sample(tuple(token + 1 for token in one.input_ids), one.loss_mask, meta=one.meta)
        for name, one in some_samples().items()
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BatchPlan]:
    """A finished directory; tests work on copies."""
    directory = tmp_path_factory.mktemp("written") / "batches"
    samples = some_samples()
    plan = planned(samples)
    write_batches(directory, plan, samples, pad_id=PAD)
    return directory, plan


@pytest.fixture
def batches(written: tuple[Path, BatchPlan], tmp_path: Path) -> Path:
    return Path(shutil.copytree(written[0], tmp_path / "copy"))


SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=30)
CONFIGS = st.builds(
    lambda make, budget, overflow, policy, seed: make(
        budget, (8, 16), max(17, overflow), seed=seed, on_overflow=policy
    ),
    st.sampled_from([BatchingConfig.predictable, BatchingConfig.throughput]),
    st.integers(16, 200),
    st.integers(17, 64),
    st.sampled_from(["truncate", "split", "skip"]),
    st.integers(0, 5),
)


@given(SIZES, CONFIGS)
@examples(60)
def test_collating_a_plan_loses_no_token_and_makes_none_up(
    sizes: list[int], config: BatchingConfig
) -> None:
    ends = np.cumsum(sizes).tolist()
    samples = {
        str(number): Sample(tuple(range(end - size, end)), (0,) + (1,) * (size - 1))
        for number, (size, end) in enumerate(zip(sizes, ends, strict=True))
    }
    lengths = {name: len(sample) for name, sample in samples.items()}
    plan = BatchPlanBuilder(lengths, config).build(1)
    tokens: dict[str, list[int]] = defaultdict(list)
    for batch in plan.iter_epoch(0):
        made = collate(samples, batch, pad_id=-5)
        assert made.shape == (batch.batch_size, batch.max_length)
        assert made.num_tokens == batch.real_tokens
        padding = made.attention_mask == 0
        assert (made.input_ids[padding] == -5).all()
        assert (made.segment_ids[padding] == -1).all()
        assert (made.loss_mask[padding] == 0).all()
        for number, row in enumerate(batch.row_entries()):
            place = 0
            for segment, (name, start, length) in enumerate(row):
                here = (number, slice(place, place + length))
                sample = samples[name]
                kept = slice(start, start + length)
                assert tuple(made.input_ids[here]) == sample.input_ids[kept]
                assert tuple(made.loss_mask[here]) == sample.loss_mask[kept]
                assert (made.segment_ids[here] == segment).all()
                assert made.position_ids[here].tolist() == list(range(length))
                tokens[name] += made.input_ids[here].tolist()
                place += length
    kept_tokens = [token for ids in tokens.values() for token in ids]
    assert (
        len(set(kept_tokens)) == len(kept_tokens) == sum(sizes) - plan.epochs[0].counts.lost_tokens
    )


@given(SIZES, CONFIGS, st.integers(0, 10**6))
@examples(15)
def test_what_was_written_is_read(sizes: list[int], config: BatchingConfig, first: int) -> None:
    samples = {
        "é\0" * number: Sample((first,) * size, (1,) * size) for number, size in enumerate(sizes)
    }
    lengths = {name: len(sample) for name, sample in samples.items()}
    plan = BatchPlanBuilder(lengths, config).build(2)
    with tempfile.TemporaryDirectory() as directory:
        write_batches(directory, plan, samples)
        reader = BatchReader(directory, plan)
        assert reader.num_batches == plan.num_batches
        for epoch in range(2):
            expected = [collate(samples, batch) for batch in plan.iter_epoch(epoch)]
            found = list(reader.iter_epoch(epoch))
            assert len(found) == len(expected)
            assert all(map(same, found, expected))
            middle = len(expected) // 2
            assert all(map(same, reader.iter_from(epoch, middle), expected[middle:]))


def test_segments_of_one_sample_stay_apart() -> None:
    samples = {
        "a": Sample((1, 2, 3), (1, 1, 1), segment_ids=(4, 4, 9)),
        "b": Sample((5, 6), (1, 1)),
    }
    packed = collate(samples, BatchSpec(("a", "b"), 0, 6, 6, rows=(2,)), pad_id=PAD)
    assert packed.input_ids.tolist() == [[1, 2, 3, 5, 6, PAD]]
    assert packed.segment_ids.tolist() == [[0, 0, 1, 2, 2, -1]]
    assert packed.position_ids.tolist() == [[0, 1, 0, 0, 1, 0]]
    sees = create_segment_attention_mask(packed.segment_ids[0])
    assert not sees[5, :5].any()
    assert not sees[:5, 5].any()


def test_data_that_the_plan_was_not_made_for_is_told() -> None:
    batch = BatchSpec(("a",), 0, 3, 3, spans=((0, 3),))
    with pytest.raises(UserError, match="a sample 'a' that the data has not"):
        collate({}, batch)
    with pytest.raises(UserError, match="'a' has 2 tokens where the plan has 3"):
        collate({"a": Sample((1, 2), (1, 1))}, batch)
    with pytest.raises(UserError, match="a row of 4 tokens is planned as 3 wide"):
        collate({"a": Sample((1,) * 4, (1,) * 4)}, BatchSpec(("a",), 0, 3, 3))


def test_a_store_gives_back_its_samples() -> None:
    samples = some_samples()
    store = SampleStore(samples.values())
    assert dict(store) == samples
    assert store.lengths() == {name: len(sample) for name, sample in samples.items()}
    with pytest.raises(ValueError, match="two samples have the id 's0'"):
        SampleStore([samples["s0"], samples["s0"]])


def test_files_hold_nothing_that_needs_pickle(written: tuple[Path, BatchPlan]) -> None:
    directory, plan = written
    for epoch in range(plan.num_epochs):
        for index in range(len(plan.epochs[epoch])):
            with np.load(directory / batch_file(epoch, index), allow_pickle=False) as arrays:
                assert set(arrays) == {*ARRAYS, "sample_ids"}
                assert not any(array.dtype.hasobject for array in arrays.values())


def test_a_changed_batch_is_told_when_it_is_read(batches: Path) -> None:
    path = batches / batch_file(1, 0)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    reader = BatchReader(batches)
    reader.read(0, 0)
    with pytest.raises(UserError, match=r"epoch_1/batch_000000.npz was changed"):
        reader.verify()


def test_missing_and_extra_files_are_told(batches: Path) -> None:
    extra = batches / "epoch_0" / "batch_999999.npz"
    extra.write_bytes(b"")
    with pytest.raises(UserError, match="1 extra file, first epoch_0/batch_999999"):
        BatchReader(batches)
    extra.unlink()
    (batches / batch_file(0, 0)).unlink()
    with pytest.raises(UserError, match="1 missing file, first epoch_0/batch_000000"):
        BatchReader(batches)


def test_batches_of_another_plan_are_refused(batches: Path) -> None:
    other = planned(some_samples(), seed=1)
    with pytest.raises(UserError, match="are of plan"):
        BatchReader(batches, other)
    with pytest.raises(UserError, match="of another plan or padding"):
        BatchWriter(batches, other, pad_id=PAD, resume=True)
    with pytest.raises(UserError, match="of another plan or padding"):
        BatchWriter(batches, planned(some_samples()), pad_id=PAD + 1, resume=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"nonsense", b'{"version": 1}', b"\xff"],
)
def test_a_damaged_manifest_is_told(batches: Path, content: bytes) -> None:
    (batches / "manifest.json").write_bytes(content)
    with pytest.raises(UserError, match=r"is damaged|not UTF-8"):
        BatchReader(batches)


@given(st.data())
@examples(80)
def test_an_npz_of_any_bytes_is_a_batch_or_refused(data: st.DataObject) -> None:
    sample = Sample((1, 2, 3), (0, 1, 1))
    content = bytearray(collate({"a": sample}, BatchSpec(("a",), 0, 4, 4)).to_bytes())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=3)):
        content[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    for damaged in (bytes(content), bytes(content[:cut])):
        with contextlib.suppress(ValueError):
            CollatedBatch.from_bytes(damaged)


def test_a_directory_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    samples = some_samples()
    with pytest.raises(UserError, match="is not empty"):
        write_batches(tmp_path, planned(samples), samples)
    with pytest.raises(UserError, match="holds no batches"):
        write_batches(tmp_path, planned(samples), samples, resume=True)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_two_writers_cannot_write_to_one_directory(tmp_path: Path) -> None:
    plan = planned(some_samples())
    with (
        BatchWriter(tmp_path / "batches", plan),
        pytest.raises(UserError, match="another process is writing"),
    ):
        BatchWriter(tmp_path / "batches", plan, resume=True)


def test_only_the_planned_batch_is_written_in_its_place(tmp_path: Path) -> None:
    samples = some_samples()
    plan = planned(samples)
    with BatchWriter(tmp_path / "batches", plan) as writer:
        with pytest.raises(ValueError, match="this is not batch 1 of epoch 0"):
            writer.write(0, 1, collate(samples, plan.epochs[0][0]))
        with pytest.raises(ValueError, match="batches are not written"):
            writer.finish()


def test_resuming_repairs_what_was_changed_or_lost(
    batches: Path, written: tuple[Path, BatchPlan]
) -> None:
    (batches / batch_file(0, 1)).write_bytes(b"torn")
    (batches / batch_file(1, 1)).unlink()
    plan = written[1]
    told: list[int] = []
    write_batches(batches, plan, some_samples(), pad_id=PAD, resume=True, progress=told.append)
    assert told == [plan.num_batches - 2, plan.num_batches - 1, plan.num_batches]
    BatchReader(batches, plan).verify()


@pytest.mark.parametrize("finished", [True, False])
def test_batches_of_other_data_are_not_gone_on_with(
    batches: Path, written: tuple[Path, BatchPlan], finished: bool
) -> None:
    plan = written[1]
    (batches / batch_file(0, 1)).unlink()
    if not finished:
        replace(Manifest.read(batches), sha256=None).write(batches)
    with pytest.raises(UserError, match=r"batch_000000.npz was written from other data"):
        write_batches(batches, plan, other_samples(), pad_id=PAD, resume=True)
    assert not (batches / batch_file(0, 1)).exists()
    write_batches(batches, plan, some_samples(), pad_id=PAD, resume=True)
    BatchReader(batches, plan).verify()


def test_a_reader_begins_only_where_there_are_batches(batches: Path) -> None:
    reader = BatchReader(batches)
    end = reader.manifest.num_batches[0]
    assert list(reader.iter_from(0, end)) == []
    for epoch, index in ((0, end + 1), (0, -1), (2, 0)):
        with pytest.raises(ValueError, match=r"none at|no epoch"):
            reader.iter_from(epoch, index)


def test_a_manifest_of_a_million_batches_is_read(tmp_path: Path) -> None:
    count = 1_100_000
    manifest = Manifest("plan", "hash", 0, (count,), sha256=(("0" * 64,) * count,))
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest


def test_a_batch_whose_ids_have_very_many_commas_is_read() -> None:
    samples = {"," * size: Sample((size,), (1,)) for size in (600_000, 600_001)}
    batch = collate(samples, BatchSpec(tuple(samples), 0, 1, len(samples)))
    assert same(CollatedBatch.from_bytes(batch.to_bytes()), batch)


def test_what_could_not_be_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = some_samples()
    plan = planned(samples)
    monkeypatch.setattr(batch_files, "LARGEST_BATCH_BYTES", 1000)
    with pytest.raises(UserError, match="plan with a smaller token budget"):
        write_batches(tmp_path / "large", plan, samples)
    monkeypatch.setattr(batch_files, "MOST_BATCHES", plan.num_batches)
    with pytest.raises(UserError, match="go into one directory"):
        write_batches(tmp_path / "many", plan, samples)
    assert not (tmp_path / "many").exists()


WRITER = """
import os, signal, sys
from tests.test_batching_batches import PAD, planned, some_samples
from batching.generation.batch_files import write_batches

directory, kill_at, touched = sys.argv[1], int(sys.argv[2]), 0


def on_event(event, arguments):
    global touched
    if event in {"open", "os.rename", "os.mkdir"} and str(arguments[0]).startswith(directory):
        touched += 1
        if touched == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


samples = some_samples(100)
plan = planned(samples)
sys.addaudithook(on_event)
write_batches(directory, plan, samples, pad_id=PAD, progress=lambda count: print(count, flush=True))
"""


@pytest.mark.parametrize("kill_at", [2, 5, 10, 12, 71])
def test_a_writer_killed_anywhere_goes_on_where_it_was(tmp_path: Path, kill_at: int) -> None:
    directory = tmp_path / "batches"
    command = [sys.executable, "-c", WRITER, str(directory), str(kill_at)]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    told = int((killed.stdout.split() or ["0"])[-1])
    before = {path: path.read_bytes() for path in directory.glob("epoch_*/batch_*.npz")}
    assert len(before) in (told, told + 1), "what was told as written is there"

    samples = some_samples(100)
    plan = planned(samples)
    assert len(before) < plan.num_batches
    begun = (directory / "manifest.json").exists()
    unfinished = f"{len(before)} of {plan.num_batches} are written; go on" if begun else "no batch"
    with pytest.raises(UserError, match=unfinished):
        BatchReader(directory)
    if begun:
        with pytest.raises(UserError, match="go on with its batches by --resume"):
            write_batches(directory, plan, samples, pad_id=PAD)
    counts: list[int] = []
    write_batches(directory, plan, samples, pad_id=PAD, resume=True, progress=counts.append)
    assert counts[0] == len(before), "nothing is written twice"
    assert all(path.read_bytes() == content for path, content in before.items())
    reader = BatchReader(directory, plan)
    found = [batch for epoch in range(2) for batch in reader.iter_epoch(epoch)]
    expected = [
        collate(samples, batch, PAD) for epoch in range(2) for batch in plan.iter_epoch(epoch)
    ]
    assert all(map(same, found, expected))


@pytest.mark.parametrize("name", ["batches", "store", "tokenizers"])
def test_the_examples_in_docstrings_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(f"batching.generation.{name}"))
    assert results.attempted
    assert not results.failed
