"""The replay buffer and its sum tree: against plain lists, across saves, and under kills."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching.core import Sample
from batching.streaming import Eviction, ReplayBuffer, StreamSample
from batching.streaming.sample_files import read_samples, save_samples
from batching.streaming.sum_tree import FAN_OUT, SumTree
from benchmarks import replay as benchmark
from query_mutator.base.errors import UserError
from query_mutator.base.locks import only_writer
from tests.nightly import examples

SIZES = (1, 2, FAN_OUT, FAN_OUT + 1, FAN_OUT**2, FAN_OUT**2 + 3)
"""Trees of one, two and three levels, full and with a last leaf of its own."""
WEIGHTS = st.one_of(st.just(0.0), st.integers(1, 1000).map(float))
ANY_WEIGHT = st.one_of(st.just(0.0), st.floats(1e-9, 1e9))


@st.composite
def changes(draw: st.DrawFn, weights: st.SearchStrategy[float]) -> tuple[int, list[Any]]:
    """A size, and changes of some leaves after the other."""
    size = draw(st.sampled_from(SIZES))
    change = st.lists(st.tuples(st.integers(0, size - 1), weights), min_size=1, max_size=8)
    return size, draw(st.lists(change, min_size=1, max_size=6))


def changed_tree(size: int, sequence: list[Any]) -> tuple[SumTree, list[float]]:
    tree, plain = SumTree(size), [0.0] * size
    for change in sequence:
        leaves, weights = zip(*change, strict=True)
        tree.set(np.array(leaves), np.array(weights))
        for leaf, weight in change:
            plain[leaf] = weight
    return tree, plain


@given(changes(WEIGHTS), st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20))
@examples(150)
def test_a_tree_is_a_list_whose_sums_are_quickly_found(
    made: tuple[int, list[Any]], shares: list[float]
) -> None:
    tree, plain = changed_tree(*made)
    sums = list(accumulate(plain))
    assert tree.weights.tolist() == plain
    assert tree.total == sums[-1]
    if sums[-1]:
        points = [share * sums[-1] for share in shares]
        expected = [next(leaf for leaf, end in enumerate(sums) if end > point) for point in points]
        assert tree.find(np.array(points)).tolist() == expected


@given(changes(ANY_WEIGHT), st.lists(st.floats(0, 1), min_size=1, max_size=20))
@examples(150)
def test_rounding_never_leads_to_a_leaf_without_weight(
    made: tuple[int, list[Any]], shares: list[float]
) -> None:
    tree, plain = changed_tree(*made)
    assert tree.total == pytest.approx(sum(plain), rel=1e-12)
    if tree.total:
        found = tree.find(np.array(shares) * tree.total)
        assert all(plain[leaf] > 0 for leaf in found.tolist())


@given(changes(ANY_WEIGHT))
@examples(100)
def test_a_tree_made_at_once_is_the_same_to_the_last_bit(made: tuple[int, list[Any]]) -> None:
    tree, plain = changed_tree(*made)
    again = SumTree(len(plain))
    again.set(np.arange(len(plain)), np.array(plain))
    assert again.total == tree.total
    points = np.linspace(0, tree.total, 50)
    if tree.total:
        assert again.find(points).tolist() == tree.find(points).tolist()


def sample(number: int, priority: float = 1.0, **more: Any) -> StreamSample:
    return StreamSample((number,), (1,), meta={"sample_id": str(number)}, priority=priority, **more)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from([0.0, 0.5, 1.0, 1.0, 7.0])),
        st.tuples(st.just("draw"), st.integers(1, 5)),
        st.tuples(st.just("update"), st.sampled_from([0.0, 0.25, 1.0, 30.0])),
    ),
    max_size=40,
)
BUFFERS = st.tuples(st.integers(1, 6), st.sampled_from(list(Eviction)), st.integers(0, 3))


def carry_out(
    buffer: ReplayBuffer, operations: list[Any], keys: Any = (), first: int = 0
) -> Iterator[Any]:
    """Carries the operations out; gives all that can be seen after each."""
    for number, (operation, value) in enumerate(operations, first):
        if operation == "add":
            buffer.add(sample(number, value))
        elif operation == "draw" and len(buffer):
            batch = buffer.sample(value)
            keys = batch.keys
            yield batch.samples, keys.tolist(), batch.weights.tolist()
        elif operation == "update":
            yield buffer.update_priorities(keys, [value + place for place in range(len(keys))])
        yield list(buffer), buffer.counts


@given(BUFFERS, st.integers(0, 15), OPERATIONS, OPERATIONS)
@examples(80)
def test_a_buffer_saved_at_any_moment_goes_on_as_it_would_have(
    made: tuple[int, Eviction, int], filled: int, before: list[Any], after: list[Any]
) -> None:
    size, eviction, seed = made
    buffer = ReplayBuffer(size, eviction, seed=seed)
    buffer.extend(sample(number, number % 4) for number in range(filled))
    for _ in carry_out(buffer, before, first=100):
        pass
    keys = buffer.sample(3).keys if len(buffer) else ()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "buffer.json"
        buffer.save(path)
        written = path.read_bytes()
        restored = ReplayBuffer.load(path)
        restored.save(path)
        assert path.read_bytes() == written
        assert json.loads(written)["size"] == len(buffer)
    assert list(restored) == list(buffer)
    going_on = carry_out(buffer, after, keys, first=200)
    for one, other in zip(going_on, carry_out(restored, after, keys, first=200), strict=True):
        assert one == other


@given(BUFFERS, st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0]), max_size=30), st.booleans())
@examples(150)
def test_a_full_buffer_gives_up_the_sample_that_its_policy_names(
    made: tuple[int, Eviction, int], priorities: list[float], change: bool
) -> None:
    size, eviction, seed = made
    buffer = ReplayBuffer(size, eviction, seed=seed)
    plain: list[StreamSample] = []
    for number, priority in enumerate(priorities):
        buffer.add(sample(number, priority))
        if len(plain) == size:
            if eviction is Eviction.PRIORITY:
                plain.remove(min(plain, key=lambda kept: kept.priority))
            elif eviction is Eviction.FIFO:
                plain.pop(0)
            else:
                (gone,) = [kept for kept in plain if kept not in list(buffer)]
                plain.remove(gone)
        plain.append(sample(number, priority))
        if change:
            place = number % len(plain)
            key = sorted(buffer._keys[: len(buffer)].tolist())[place]
            plain[place] = plain[place].with_priority(5 - priority)
            assert buffer.update_priorities([key], [5 - priority]) == 1
        assert list(buffer) == plain
    assert buffer.counts.added == len(priorities)
    assert buffer.counts.evicted == len(priorities) - len(plain)


def test_random_eviction_takes_every_place_alike() -> None:
    buffer, rounds = ReplayBuffer(4, "random"), 4000
    buffer.extend(sample(number) for number in range(4))
    freed: Counter[int] = Counter()
    for number in range(rounds):
        buffer.add(sample(100 + number))
        freed[int(buffer._keys.argmax())] += 1  # the place of the newest
    assert sorted(freed) == [0, 1, 2, 3]
    assert max(freed.values()) - min(freed.values()) < 5 * (rounds / 4) ** 0.5


def test_priorities_that_change_all_the_time_do_not_make_the_buffer_grow() -> None:
    buffer = ReplayBuffer(8, "priority")
    buffer.extend(sample(number) for number in range(8))
    keys = buffer.sample(8).keys
    for turn in range(500):
        buffer.update_priorities(keys, [float(turn)] * 8)
    assert len(buffer._lowest) <= 2 * 8 + 1
    buffer.add(sample(99))
    assert len(buffer) == 8


def test_samples_are_drawn_in_proportion_to_priority_to_the_power_of_0_6() -> None:
    priorities = {1: 0.5, 2: 1.0, 3: 4.0, 4: 0.0}
    buffer = ReplayBuffer(10)
    buffer.extend(sample(number, priority) for number, priority in priorities.items())
    draws = 20_000
    drawn = Counter(int(one.sample_id) for one in buffer.sample(draws).samples)
    total = sum(priority**0.6 for priority in priorities.values())
    for number, priority in priorities.items():
        chance = priority**0.6 / total
        # Five standard deviations; the seed is fixed, so it cannot fail by chance.
        assert drawn[number] == pytest.approx(
            draws * chance, abs=5 * (draws * chance * (1 - chance)) ** 0.5
        )


def test_importance_weights_make_up_for_the_priorities() -> None:
    buffer = ReplayBuffer(4)
    buffer.extend([sample(0, 1.0), sample(1, 32.0)])
    batch = buffer.sample(64, beta=1.0)
    chance = {"0": 1 / 9, "1": 8 / 9}  # 32 ** 0.6 is 8
    for one, weight in zip(batch.samples, batch.weights, strict=True):
        assert weight == pytest.approx(chance["0"] / chance[one.sample_id])
    assert set(buffer.sample(64, beta=0.0).weights) == {1.0}


def test_samples_of_no_priority_at_all_are_drawn_alike() -> None:
    buffer = ReplayBuffer(4)
    buffer.extend(sample(number, 0.0) for number in range(3))
    batch = buffer.sample(300)
    assert {one.sample_id for one in batch.samples} == {"0", "1", "2"}
    assert set(batch.weights) == {1.0}


def test_every_draw_counts_as_a_replay_of_a_copy() -> None:
    buffer = ReplayBuffer(2)
    first = sample(0)
    buffer.add(first)
    assert [one.replay_count for one in buffer.sample(3).samples] == [3, 3, 3]
    assert [one.replay_count for one in buffer] == [3]
    assert first.replay_count == 0


def test_a_priority_for_a_sample_that_has_gone_is_counted_and_harms_nobody() -> None:
    buffer = ReplayBuffer(1)
    buffer.add(sample(0))
    keys = buffer.sample(1).keys
    buffer.add(sample(1, 5.0))
    assert buffer.update_priorities(keys, [99.0]) == 0
    assert buffer.counts.missed_updates == 1
    assert [one.priority for one in buffer] == [5.0]


@pytest.mark.parametrize("bad", [float("nan"), -1.0, float("inf")])
def test_a_priority_that_is_none_is_refused_and_nothing_changes(bad: float) -> None:
    buffer = ReplayBuffer(4)
    buffer.extend([sample(0), sample(1)])
    before = list(buffer)
    keys = [int(key) for key in buffer._keys[:2]]
    with pytest.raises(ValueError, match="priority"):
        buffer.update_priorities(keys, [3.0, bad])
    with pytest.raises(ValueError, match="priority"):
        sample(3, bad)
    assert list(buffer) == before
    assert buffer._tree.weights[:2].tolist() == [1.0, 1.0]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    buffer = ReplayBuffer(8)
    buffer.extend(sample(number) for number in range(5))
    buffer.save(tmp_path / "buffer.json")
    return tmp_path / "buffer.json"


def test_a_file_that_was_changed_or_cut_anywhere_is_refused_in_a_line(saved: Path) -> None:
    whole = saved.read_bytes()
    for place in range(0, len(whole), 7):
        for damaged in (whole[:place], whole[:place] + b"7" + whole[place + 1 :]):
            if damaged == whole:
                continue
            saved.write_bytes(damaged)
            with pytest.raises(UserError, match=r"damaged|version") as told:
                ReplayBuffer.load(saved)
            assert str(told.value).count("\n") <= 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_size", 2**60),
        ("max_size", 3),
        ("max_size", "8"),
        ("eviction", "none"),
        ("eviction", []),
        ("priority_exponent", "x"),
        ("generator", {}),
        ("generator", {"bit_generator": "PCG64", "state": {"state": -1, "inc": 2**200}}),
        ("counts", []),
        ("counts", {"added": 1}),
        (
            "counts",
            {"added": 10**24, "evicted": 10**24 - 5, "drawn": 0, "updated": 0, "missed_updates": 0},
        ),
        ("size", 4),
        ("version", 2),
    ],
)
def test_a_file_whose_settings_make_no_buffer_is_refused(
    saved: Path, name: str, value: Any
) -> None:
    rewrite(saved, lambda content: content.update({name: value}))
    with pytest.raises(UserError):
        ReplayBuffer.load(saved)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_ids", [1.5]),
        ("input_ids", [True]),
        ("input_ids", [-1]),
        ("input_ids", [2**40]),
        ("input_ids", "1"),
        ("loss_mask", [1, 1]),
        ("meta", []),
        ("success", 1),
        ("priority", -1.0),
        ("difficulty", 2.0),
        ("replay_count", -1),
        ("step_index", True),
        ("number", 3),
        ("number", 99),
        ("number", None),
        pytest.param("reward", 10**400, id="reward beyond a float"),
        pytest.param("priority", 10**400, id="priority beyond a float"),
        ("stray", 1),
    ],
)
def test_a_file_whose_entry_is_no_sample_is_refused(saved: Path, name: str, value: Any) -> None:
    rewrite(saved, lambda content: content["entries"][1].update({name: value}))
    with pytest.raises(UserError, match="damaged"):
        ReplayBuffer.load(saved)


def test_an_entry_nested_too_deep_is_refused(saved: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"deeper": deep}
    rewrite(saved, lambda content: content["entries"][1].update({"meta": deep}))
    with pytest.raises(UserError, match="meta"):
        ReplayBuffer.load(saved)


def rewrite(path: Path, change: Any) -> None:
    """Changes a saved buffer and gives it a digest that fits, as someone who means harm would."""
    content = json.loads(path.read_bytes())
    change(content)
    entries = content.pop("entries")
    content.pop("sha256")
    body = json.dumps(content)[:-1] + ', "entries": [\n'
    body += ",\n".join(json.dumps(entry) for entry in entries) + "\n"
    digest = hashlib.sha256(body.encode()).hexdigest()
    path.write_text(f'{body}], "sha256": "{digest}"}}\n')


def test_the_helper_that_rewrites_files_writes_good_ones(saved: Path) -> None:
    before = list(ReplayBuffer.load(saved))
    rewrite(saved, lambda content: None)
    assert list(ReplayBuffer.load(saved)) == before


def test_a_save_that_finds_no_room_leaves_the_file_of_before(saved: Path) -> None:
    before = saved.read_bytes()
    code = (
        "import resource, sys; from batching.streaming import ReplayBuffer, StreamSample\n"
        "buffer = ReplayBuffer.load(sys.argv[1])\n"
        "buffer.extend(StreamSample((1,) * 500, (1,) * 500) for _ in range(3))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "try: buffer.save(sys.argv[1])\n"
        "except OSError as error: print(error.strerror)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "File too large\n"
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_sample_of_very_many_tokens_is_saved_and_loaded(tmp_path: Path) -> None:
    tokens = (1,) * 600_000
    buffer = ReplayBuffer(2)
    buffer.add(StreamSample(tokens, tokens, meta={"prompt": "," * 600_000}))
    buffer.save(tmp_path / "buffer.json")
    assert list(ReplayBuffer.load(tmp_path / "buffer.json")) == list(buffer)
    save_samples(tmp_path / "samples.jsonl", buffer)
    assert list(read_samples(tmp_path / "samples.jsonl")) == list(buffer)


def test_a_sample_that_could_not_be_read_again_is_not_written(saved: Path) -> None:
    before = saved.read_bytes()
    buffer = ReplayBuffer(2)
    buffer.add(StreamSample((1,), (1,), meta={"sample_id": "large", "prompt": "," * 16_000_000}))
    for write in (buffer.save, lambda path: save_samples(path, buffer)):
        with pytest.raises(UserError, match="'large' of 1 tokens is too large"):
            write(saved)
    assert saved.read_bytes() == before


def test_a_save_removes_only_what_another_of_the_same_name_left(saved: Path) -> None:
    own = saved.with_name(f".{saved.name}.abcd_123.partial")
    others = [
        saved.with_name(f".{saved.name}.{name}.partial")
        for name in ("v2.abcd_123", "by hand", "old.json")
    ]
    for path in (own, *others):
        path.touch()
    ReplayBuffer.load(saved).save(saved)
    assert sorted(saved.parent.iterdir()) == sorted([saved, *others])


def test_a_name_with_the_marks_of_a_pattern_is_only_a_name(tmp_path: Path) -> None:
    kept = tmp_path / ".buffer1.abcd_123.partial"
    kept.touch()
    ReplayBuffer(1).save(tmp_path / "buffer[1]")
    assert kept.exists()


def test_a_buffer_has_one_writer_at_a_time(saved: Path) -> None:
    before = saved.read_bytes()
    code = (
        "import sys; from batching.streaming import ReplayBuffer\nReplayBuffer(1).save(sys.argv[1])"
    )
    with only_writer(saved):
        other = subprocess.run(
            [sys.executable, "-c", code, str(saved)], capture_output=True, text=True
        )
        assert f"another process is writing to {saved}" in other.stderr
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name], "the lock has gone"
    ReplayBuffer(1).save(saved)
    assert len(ReplayBuffer.load(saved)) == 0


def test_what_is_no_stream_sample_is_refused_and_nothing_changes() -> None:
    buffer = ReplayBuffer(4)
    with pytest.raises(ValueError, match="holds StreamSamples, no Sample"):
        buffer.extend([sample(0), Sample((1,), (1,))])  # type: ignore[list-item]
    assert (len(buffer), buffer.counts.added) == (0, 0)
    buffer.add(sample(1))
    assert [one.sample_id for one in buffer.sample(1).samples] == ["1"]


WRITER = """
import sys
from batching.streaming import ReplayBuffer, StreamSample
buffer = ReplayBuffer(100, "priority", seed=1)
turn = 0
while True:
    turn += 1
    buffer.extend(StreamSample((turn,) * 50, (1,) * 50, priority=turn + n) for n in range(50))
    buffer.sample(8)
    buffer.save(sys.argv[1])
    print(turn, flush=True)
"""


@pytest.mark.parametrize("heard", [1, 2, 5])
def test_a_writer_killed_in_mid_save_loses_nothing_that_was_saved(
    tmp_path: Path, heard: int
) -> None:
    path = tmp_path / "buffer.json"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for _ in range(heard):
        last = int(writer.stdout.readline())
    # It is already at the next save, and is killed somewhere in it.
    writer.send_signal(signal.SIGKILL)
    last = max([last, *map(int, writer.stdout.read().split())])
    writer.wait()
    writer.stdout.close()
    buffer = ReplayBuffer.load(path)
    assert buffer.counts.added in (50 * last, 50 * (last + 1))
    assert buffer.counts.drawn == buffer.counts.added // 50 * 8
    buffer.save(path)
    assert os.listdir(tmp_path) == [path.name], "what the killed one left is cleared away"


def test_the_benchmark_tells_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--entries", "300", "--rounds", "3", "--save"]) == 0
    told = capsys.readouterr().out
    for eviction in Eviction:
        assert told.count(f"{eviction} ") >= 3
    assert "loaded in" in told
    assert benchmark.main(["--entries", "0"]) == 2
