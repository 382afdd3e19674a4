"""The checkpoint format: what is written is read back, and damage of every sort is noticed."""

from __future__ import annotations

import contextlib
import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from query_mutator.base.errors import UserError
from query_mutator.runs import checkpoints
from query_mutator.runs.checkpoints import (
    Checkpoint,
    CheckpointStore,
    UnusableCheckpointError,
    digest,
    read_checkpoint,
    write_checkpoint,
)
from query_mutator.runs.directory import RunDirectory
from query_mutator.servers.simulated import SimulatedServer
from query_mutator.training.counts import RunCounts
from query_mutator.training.trainer import Trainer
from query_mutator.training.trainer_state import read_counts
from tests.conftest import last_checkpoint
from tests.nightly import examples
from tests.test_training import train
from train_query_mutator import main

CHECKPOINT = Checkpoint(
    {
        "policy.weight": torch.tensor([[1.5, -0.0], [math.inf, 1e-30]]),
        "optimizer.0.step": torch.tensor(3.0),
        "flags": torch.tensor([True, False]),
        "nothing": torch.zeros(0, 3),
    },
    {"counts": {"update": 3}, "text": "Straße \x00 \ud800", "third": 1 / 3},
)
FUZZ = examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def same(left: Checkpoint, right: Checkpoint) -> bool:
    return (
        left.state == right.state
        and left.tensors.keys() == right.tensors.keys()
        and all(torch.equal(left.tensors[name], right.tensors[name]) for name in left.tensors)
    )


def read(path: Path) -> Checkpoint:
    return read_checkpoint(path, tensor_bytes=1000)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "step-000000000008.safetensors"
    write_checkpoint(path, CHECKPOINT)
    return path


def test_what_was_written_is_read(written: Path) -> None:
    assert same(read(written), CHECKPOINT)
    assert written.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in written.parent.iterdir()] == [written.name]


@FUZZ
@given(st.data())
def test_a_changed_byte_is_noticed_or_harmless(written: Path, data: st.DataObject) -> None:
    content = bytearray(CONTENT)
    # Half of them in the header, where a byte has a meaning of its own.
    end = data.draw(st.sampled_from([8 + int.from_bytes(CONTENT[:8], "little"), len(CONTENT)]))
    content[data.draw(st.integers(0, end - 1))] ^= data.draw(st.integers(1, 255))
    written.write_bytes(content)
    with contextlib.suppress(UnusableCheckpointError):
        assert same(read(written), CHECKPOINT)


@FUZZ
@given(st.integers(0, 10_000))
def test_a_cut_file_is_noticed(written: Path, length: int) -> None:
    written.write_bytes(CONTENT[: length % len(CONTENT)])
    with pytest.raises(UnusableCheckpointError, match="is damaged or of another kind"):
        read(written)


HEADERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["__metadata__", "kind", "sha256", "version", "state", "dtype",
                             "shape", "data_offsets"]), inner, max_size=4
        )
    ),
)  # fmt: skip


@FUZZ
@given(HEADERS, st.binary(max_size=64), st.one_of(st.none(), st.integers(0, 2**64 - 1)))
def test_a_hostile_header_is_refused(
    written: Path, header: Any, rest: bytes, length: int | None
) -> None:
    text = json.dumps(header).encode()
    size = len(text) if length is None else length
    written.write_bytes(size.to_bytes(8, "little") + text + rest)
    with pytest.raises(UnusableCheckpointError):
        read(written)


def sealed(state: bytes, version: int = checkpoints.VERSION, **metadata: str) -> bytes:
    """A file whose digest is right, whatever is in it."""
    tensors = {"state": torch.tensor(list(state), dtype=torch.uint8)}
    told = {"kind": checkpoints.KIND, "version": str(version), "sha256": digest(tensors, version)}
    return safetensors.torch.save(tensors, told | metadata)


CONTENT = b""


@pytest.fixture(autouse=True)
def _content(written: Path) -> None:
    global CONTENT
    CONTENT = written.read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x04K\x01.",
        b"[" * 200_000,
        safetensors.torch.save({"weight": torch.ones(2)}),
        safetensors.torch.save({"weight": torch.ones(2)}, {"format": "pt"}),
        sealed(b"{", kind="another"),
        sealed(b"not JSON"),
        sealed(b"[1, 2]"),
        sealed(b"[" * 200_000),
        sealed(b'{"a": ' * 200_000),
        sealed(b"{}", sha256="0" * 64),
        sealed(b"{}", version=1) + b"\x00",
    ],
)
def test_a_file_of_another_kind_is_no_checkpoint(content: bytes, written: Path) -> None:
    written.write_bytes(content)
    with pytest.raises(UnusableCheckpointError, match="is damaged or of another kind"):
        read(written)


def test_a_file_that_is_too_large_is_not_read(written: Path) -> None:
    with written.open("ab") as file:
        file.truncate(2**40)  # takes no room on the disk, and would in memory
    with pytest.raises(UnusableCheckpointError, match="too many"):
        read(written)


def test_a_newer_version_is_told_and_not_passed_over(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints")
    store.save(1, CHECKPOINT)
    store.path_of(2).write_bytes(sealed(b"{}", version=2))
    with pytest.raises(UserError, match="written by a newer version") as error:
        store.newest(tensor_bytes=1000)
    assert "\n" not in str(error.value)


def test_damage_to_the_version_does_not_pass_for_a_newer_one(written: Path) -> None:
    written.write_bytes(CONTENT.replace(b'"version":"1"', b'"version":"9"'))
    assert written.read_bytes() != CONTENT
    with pytest.raises(UnusableCheckpointError, match="digest"):
        read(written)


def test_the_last_three_are_kept_and_the_last_whole_one_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = CheckpointStore(tmp_path / "checkpoints")
    for step in (2, 10, 100, 1000):
        store.save(step, Checkpoint({}, {"step": step}))
    assert store.paths() == [store.path_of(step) for step in (10, 100, 1000)]
    store.path_of(1000).write_bytes(b"")
    store.path_of(100).write_bytes(store.path_of(100).read_bytes()[:-1])
    with caplog.at_level(logging.WARNING):
        assert store.newest(tensor_bytes=1000).state == {"step": 10}
    assert len(caplog.messages) == 2
    assert all(f"using the one before it, {store.path_of(10).name}" in m for m in caplog.messages)
    store.tidy(10)
    store.save(50, Checkpoint({}, {"step": 50}))
    assert store.newest(tensor_bytes=1000).state == {"step": 50}
    assert store.paths() == [store.path_of(10), store.path_of(50)]


def test_where_none_is_usable_that_is_said_in_a_line(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints")
    with pytest.raises(UserError, match="holds no checkpoint"):
        store.newest(tensor_bytes=1000)
    for step in (1, 2):
        store.save(step, CHECKPOINT)
        store.path_of(step).write_bytes(b"junk")
    with pytest.raises(UserError, match=r"no usable checkpoint: .* and 1 before it") as error:
        store.newest(tensor_bytes=1000)
    assert "\n" not in str(error.value)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has ended."""
    run = tmp_path_factory.mktemp("finished") / "run"
    with SimulatedServer() as server:
        assert train(server, run) == 0
    return run


@pytest.fixture
def trainer(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Trainer:
    """The trainer of that run, as it is before it has taken up a checkpoint."""
    caught: list[Trainer] = []

    class CaughtError(BaseException):
        pass

    def restore(self: Trainer) -> None:
        caught.append(self)
        raise CaughtError

    with SimulatedServer() as server, monkeypatch.context() as patched:
        patched.setattr(Trainer, "restore", restore)
        with pytest.raises(CaughtError):
            main(["--resume", "--run-dir", str(finished), "--server", server.url])
    return caught[0]


Change = Callable[[dict[str, torch.Tensor], dict[str, Any]], object]
MISFITS: dict[str, Change] = {
    "there is no tensor policy.actor.0.weight": lambda t, s: t.pop("policy.actor.0.weight"),
    "there is no tensor optimizer.0.exp_avg": lambda t, s: t.pop("optimizer.0.exp_avg"),
    "there is no tensor optimizer.1.step": lambda t, s: t.pop("optimizer.1.step"),
    "there is no tensor envs.observations": lambda t, s: t.pop("envs.observations"),
    "policy.actor.0.bias is [1] of": lambda t, s: t.update({"policy.actor.0.bias": torch.ones(1)}),
    "of torch.float64": lambda t, s: t.update(
        {"policy.actor.0.bias": t["policy.actor.0.bias"].double()}
    ),
    "policy.more is not of this policy": lambda t, s: t.update({"policy.more": torch.ones(1)}),
    "there is no 'shuffle'": lambda t, s: s.pop("shuffle"),
    "there is no 'counts'": lambda t, s: s.pop("counts"),
    "counts are others": lambda t, s: s["counts"].pop("update"),
    "update is not a count": lambda t, s: s["counts"].update(update=-1),
    "wall_time_s is not a number": lambda t, s: s["counts"].update(wall_time_s="long"),
    "calls is not a table": lambda t, s: s["counts"].update(calls=[]),
    "there is no 'keeper'": lambda t, s: s.pop("keeper"),
    "moments.0 is not a number": lambda t, s: s["keeper"]["moments"].__setitem__(0, "1"),
    "curves is not a count": lambda t, s: s.update(curves={"../../x": "1"}),
    "learning_rate is not a number": lambda t, s: s.update(learning_rate=None),
    "numpy_random is not the state": lambda t, s: s["numpy_random"].__setitem__(1, 10**6),
    "there is no question 'none'": lambda t, s: s["envs"][0].update(question_id="none"),
    "state.answer is 1": lambda t, s: s["envs"][1]["state"].update(answer=1),
    "there is no operator 99": lambda t, s: s["envs"][1]["state"].update(tried=[99]),
    "state must be for a PCG64 RNG": lambda t, s: s["envs"][0].update(random={"x": 1}),
    "argument 2 is shorter": lambda t, s: s.update(envs=s["envs"][:2]),
    "too many values": lambda t, s: s.update(python_random=[1, 2, 3, 4]),
}


def test_what_does_not_fit_the_run_is_told_in_a_line(trainer: Trainer, tmp_path: Path) -> None:
    good = last_checkpoint(trainer.run.path)
    log = trainer.run.transitions.read_bytes()
    for message, change in MISFITS.items():
        tensors, state = dict(good.tensors), json.loads(json.dumps(good.state))
        change(tensors, state)
        trainer.run = RunDirectory(tmp_path)
        trainer.run.transitions.write_bytes(log)
        trainer.run.checkpoints.save(48, Checkpoint(tensors, state))
        with pytest.raises(UserError) as error:
            trainer.restore()
        assert message in str(error.value)
        assert "does not fit its config.json" in str(error.value)
        assert "\n" not in str(error.value)
    trainer.run.checkpoints.save(48, good)
    trainer.restore()
    assert trainer.counts.env_steps == 48


def test_a_log_that_has_lost_lines_takes_the_run_back_to_where_it_has_them(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
) -> None:
    log = trainer.run.transitions
    content = log.read_bytes()
    log.write_bytes(content[:-1])
    trainer.restore()
    assert trainer.counts.env_steps == 32
    assert f"goes with {len(content)} bytes of transitions.jsonl" in caplog.text
    assert log.read_bytes() == b"".join(content.splitlines(keepends=True)[:32])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@FUZZ
@given(st.sampled_from(sorted(vars(RunCounts()))), JSON)
def test_counts_of_any_kind_are_read_or_refused(name: str, value: Any) -> None:
    saved = {**vars(RunCounts()), name: value}
    with contextlib.suppress(ValueError):
        assert vars(read_counts(saved)) == saved


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--gamma", "0.5"], "--gamma 0.5: the run has 1.0"),
        (["--eval-sample", "7"], "--eval-sample 7: the run has 32"),
        (["--use-linear-lr-decay"], "--use-linear-lr-decay True: the run has False"),
        (["--seed", "2"], "--seed 2: the run has 1"),
    ],
)
def test_a_resumed_run_refuses_what_would_make_it_another(
    flags: list[str], named: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--resume", "--run-dir", str(finished), *flags]) == 2
    assert named in capsys.readouterr().err


def test_a_falling_learning_rate_fixes_the_number_of_steps(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = finished / "config.json"
    before = config.read_text()
    config.write_text(before.replace('"use_linear_lr_decay": false', '"use_linear_lr_decay": true'))
    try:
        assert main(["--resume", "--run-dir", str(finished), "--num-env-steps", "64"]) == 2
    finally:
        config.write_text(before)
    said = capsys.readouterr().err
    assert "--num-env-steps 64: the run has 48 and --use-linear-lr-decay" in said
