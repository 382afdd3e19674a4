"""Plans on disk: the same when read again, whole after a kill, and no trust in what was changed."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching import (
    BatchingConfig,
    BatchPlan,
    BatchPlanBuilder,
    OverflowPolicy,
    PackingConfig,
    save_shards,
    verify,
)
from query_mutator.base.errors import UserError
from tests.nightly import examples

LENGTHS = {f"sample {index}": 1 + index * 37 % 90 for index in range(60)}
CONFIG = BatchingConfig(token_budget=256, bucket_edges=(16, 48), overflow_max=96)
OTHER = BatchingConfig(token_budget=128, bucket_edges=(16, 48), overflow_max=96)


def plan_of(config: BatchingConfig = CONFIG, epochs: int = 2) -> BatchPlan:
    return BatchPlanBuilder(LENGTHS, config, "data", "tokenizer").build(epochs)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    plan_of().save(tmp_path / "plan")
    return tmp_path / "plan"


@given(
    st.dictionaries(st.text(max_size=5), st.integers(0, 150), max_size=20),
    st.sampled_from([None, PackingConfig(max_length=40)]),
    st.sampled_from([OverflowPolicy.SPLIT, OverflowPolicy.TRUNCATE, OverflowPolicy.SKIP]),
    st.integers(1, 3),
)
@examples(40)
def test_a_plan_is_the_same_when_it_is_read_again(
    lengths: dict[str, int], packing: PackingConfig | None, policy: OverflowPolicy, ranks: int
) -> None:
    config = BatchingConfig(100, (16, 48), 96, on_overflow=policy, packing=packing)
    plan = BatchPlanBuilder(lengths, config).build(2)
    with tempfile.TemporaryDirectory() as directory:
        for number, one in enumerate((plan, plan.shard(0, ranks))):
            path = Path(directory, str(number))
            one.save(path)
            read = BatchPlan.load(path)
            assert read.fingerprint == one.fingerprint
            assert read.meta.to_dict() == one.meta.to_dict()
            assert [list(e) for e in read.epochs] == [list(e) for e in one.epochs]
            assert [e.counts for e in read.epochs] == [e.counts for e in one.epochs]
            assert verify(read, lengths) == []
            rebuilt = BatchPlanBuilder.from_plan(read, lengths).build()
            assert rebuilt.fingerprint == one.fingerprint


def test_the_files_are_those_of_the_documents(saved: Path) -> None:
    meta = json.loads((saved / "meta.json").read_text())
    first = json.loads((saved / "epoch_0.jsonl").read_text().splitlines()[0])

    assert {path.name for path in saved.iterdir()} == {
        "meta.json", "epoch_0.jsonl", "epoch_1.jsonl"
    }  # fmt: skip
    assert (meta["version"], meta["fingerprint"]) == (1, plan_of().fingerprint)
    assert meta["config"] == json.loads(json.dumps(CONFIG.to_dict()))
    assert set(first) == {"sample_ids", "bucket_id", "max_length", "token_count", "lengths"}


def test_shards_are_written_by_rank(tmp_path: Path) -> None:
    paths = save_shards(plan_of(), 3, tmp_path)
    shards = [BatchPlan.load(path) for path in paths]

    assert [path.name for path in paths] == ["rank_0", "rank_1", "rank_2"]
    assert len({len(shard.epochs[0]) for shard in shards}) == 1
    assert {shard.meta.shard.rank for shard in shards if shard.meta.shard} == {0, 1, 2}


def test_shards_take_the_place_of_more_shards_and_of_nothing_else(tmp_path: Path) -> None:
    save_shards(plan_of(), 4, tmp_path / "shards")
    save_shards(plan_of(), 2, tmp_path / "shards")

    assert {path.name for path in (tmp_path / "shards").iterdir()} == {"rank_0", "rank_1"}
    (tmp_path / "shards" / "rank_0" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="is no directory of shards; choose another place"):
        save_shards(plan_of(), 2, tmp_path / "shards")
    assert (tmp_path / "shards" / "rank_0" / "notes.txt").exists()


def test_a_batch_of_any_number_of_values_can_be_read_again(tmp_path: Path) -> None:
    plan = BatchPlanBuilder({"," * 1_200_000: 1}, CONFIG).build()
    plan.save(tmp_path / "plan")

    assert BatchPlan.load(tmp_path / "plan").fingerprint == plan.fingerprint


def test_a_batch_that_could_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batching.planning.files.MOST_BYTES", 99)

    with pytest.raises(UserError, match=r"a batch of .* samples takes more than"):
        plan_of().save(tmp_path / "plan")

    assert not list(tmp_path.iterdir())


def test_writers_to_the_same_place_take_turns(tmp_path: Path) -> None:
    plans = [plan_of(), plan_of(OTHER), plan_of(epochs=3)]
    children = []
    for plan in plans:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for _ in range(15):
                    plan.save(tmp_path / "plan")
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

    assert codes == [0, 0, 0]
    assert BatchPlan.load(tmp_path / "plan").fingerprint in {plan.fingerprint for plan in plans}
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_what_is_being_written_to_another_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".plan.v2.abcdefgh.partial").mkdir()
    (tmp_path / ".plan.abcdefgh.partial").mkdir()

    plan_of().save(tmp_path / "plan")

    assert {path.name for path in tmp_path.iterdir()} == {"plan", ".plan.v2.abcdefgh.partial"}


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """A change to `meta.json`."""

    def apply(plan: Path) -> None:
        meta = json.loads((plan / "meta.json").read_text())
        change(meta)
        (plan / "meta.json").write_text(json.dumps(meta))

    return apply


def torn(plan: Path) -> None:
    text = (plan / "epoch_1.jsonl").read_bytes()
    (plan / "epoch_1.jsonl").write_bytes(text[: len(text) // 2])


def swapped(plan: Path) -> None:
    lines = (plan / "epoch_0.jsonl").read_text().splitlines(keepends=True)
    (plan / "epoch_0.jsonl").write_text("".join([lines[1], lines[0], *lines[2:]]))


def rewritten(**fields: Any) -> Callable[[Path], None]:
    """A change to the first batch."""

    def apply(plan: Path) -> None:
        first, *rest = (plan / "epoch_0.jsonl").read_text().splitlines(keepends=True)
        changed = json.dumps(json.loads(first) | fields) + "\n"
        (plan / "epoch_0.jsonl").write_text("".join([changed, *rest]))

    return apply


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (torn, "epoch_1.jsonl"),
        (swapped, "epoch_0.jsonl does not hold what meta.json says"),
        (lambda plan: (plan / "epoch_1.jsonl").write_bytes(b""), "epoch_1.jsonl does not hold"),
        (lambda plan: (plan / "epoch_1.jsonl").write_bytes(b"[]\n"), "line 1 of epoch_1.jsonl"),
        (lambda plan: (plan / "epoch_1.jsonl").write_bytes(b"\xff\n"), "line 1 of epoch_1.jsonl"),
        (lambda plan: (plan / "meta.json").write_text("{"), "damaged"),
        (lambda plan: (plan / "meta.json").write_text("[]"), "holds no object"),
        (edited(lambda meta: meta.update(version=2)), "its version is 2, and 1 is known"),
        (edited(lambda meta: meta["config"].update(seed=7)), "does not match its fingerprint"),
        (edited(lambda meta: meta["config"].update(seed="7")), "must be a whole number"),
        (edited(lambda meta: meta["config"].update(more=7)), "more"),
        (edited(lambda meta: meta["config"].pop("seed")), "seed"),
        (edited(lambda meta: meta.update(dataset_hash="x")), "does not match its fingerprint"),
        (edited(lambda meta: meta.update(num_samples="60")), "does not match its fingerprint"),
        (edited(lambda meta: meta.update(note="x")), "wrong kind or unknown"),
        (edited(lambda meta: meta.pop("epochs")), "epochs"),
        (edited(lambda meta: meta["epochs"].pop()), "does not match its fingerprint"),
        (edited(lambda meta: meta["epochs"][0]["counts"].update(split=3)), "fingerprint"),
        (edited(lambda meta: meta.update(shard={"rank": 4, "world_size": 2})), "rank must be"),
        (rewritten(sample_ids=["x"]), "line 1 of epoch_0.jsonl is no batch"),
        (rewritten(sample_ids=[]), "line 1 of epoch_0.jsonl is no batch"),
        (rewritten(max_length=-5), "negative"),
        (rewritten(max_length=2**70), "line 1"),
        (rewritten(bucket_id=True), "negative or none"),
        (rewritten(bucket_id=1), "does not hold what"),
    ],
)
def test_a_damaged_plan_is_told_in_two_lines(
    saved: Path, damage: Callable[[Path], object], complaint: str
) -> None:
    damage(saved)

    with pytest.raises(UserError, match=complaint) as error:
        BatchPlan.load(saved)

    assert len(str(error.value).splitlines()) <= 2
    assert "plan build" in str(error.value)


def test_a_plan_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read plan .*No such file"):
        BatchPlan.load(tmp_path / "plan")


def test_a_missing_epoch_is_told(saved: Path) -> None:
    (saved / "epoch_1.jsonl").unlink()

    with pytest.raises(UserError, match=r"cannot read plan .*epoch_1.jsonl: No such file"):
        BatchPlan.load(saved)


def test_ids_may_hold_any_character(tmp_path: Path) -> None:
    lengths = {"\ud800": 3, "a\nb": 4, "\0": 5, "": 6, "é": 7}
    plan = BatchPlanBuilder(lengths, CONFIG).build()

    plan.save(tmp_path / "plan")

    read = BatchPlan.load(tmp_path / "plan")
    assert read.fingerprint == plan.fingerprint
    assert {name for batch in read.iter_epoch() for name in batch.sample_ids} == set(lengths)


def test_only_a_plan_is_ever_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("more")

    for name in ("mine", "file"):
        with pytest.raises(UserError, match="is no plan; choose another place"):
            plan_of().save(tmp_path / name)

    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    plan_of().save(tmp_path / "plan")
    plan_of(OTHER).save(tmp_path / "plan")
    assert BatchPlan.load(tmp_path / "plan").fingerprint == plan_of(OTHER).fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine", "plan"]


def killed_while_saving(plan: BatchPlan, path: Path, at: int) -> bool:
    """Saves in a process that is killed at its `at`-th touch of a file; whether it was."""
    child = os.fork()
    if child == 0:
        touched = 0

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal touched
            if event in {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"} and str(
                arguments[0]
            ).startswith(str(path.parent)):
                touched += 1
                if touched == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            plan.save(path)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("replacing", [False, True])
def test_a_killed_writer_leaves_a_plan_or_says_what_to_do(tmp_path: Path, replacing: bool) -> None:
    first, second = plan_of(), plan_of(OTHER)
    kills = 0
    outcomes = set()
    while True:
        path = tmp_path / str(kills) / "plan"
        path.parent.mkdir()
        if replacing:
            first.save(path)
        if not killed_while_saving(second, path, at=kills + 1):
            break
        kills += 1
        try:
            found = BatchPlan.load(path).fingerprint
            assert found in {second.fingerprint, *([first.fingerprint] if replacing else [])}
            outcomes.add("before" if found == first.fingerprint else "after")
        except UserError as error:
            outcomes.add("told")
            if replacing:
                command = str(error).splitlines()[1].partition(": ")[2]
                assert os.system(command) == 0
                assert BatchPlan.load(path).fingerprint == first.fingerprint
        second.save(path)
        assert BatchPlan.load(path).fingerprint == second.fingerprint
        assert [p.name for p in path.parent.iterdir()] == ["plan"], "nothing is left lying about"

    assert kills >= 5
    assert outcomes == {"told", "after", *(["before"] if replacing else [])}
