"""Files with anything in them: a value, or one or two lines that say what is wrong."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_mutator.base import untrusted
from query_mutator.base.errors import UserError
from query_mutator.data import load_questions
from query_mutator.environment.transition import Transition
from query_mutator.objectives.refusal.labelled import read_labelled
from query_mutator.operators import load_operators
from query_mutator.runs.settings import read_settings
from query_mutator.runs.transitions import read_transitions
from tests.test_hostile_answers import ANYTHING, FUZZ, some


def transitions_in(file: Path) -> list[Transition]:
    run = file.with_suffix("")
    run.mkdir(exist_ok=True)
    os.replace(file, run / "transitions.jsonl")
    return list(read_transitions(run))


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "jsonl": ("q.jsonl", load_questions),
    "csv": ("q.csv", load_questions),
    "toml": ("o.toml", lambda file: load_operators([file])),
    "config": ("c.json", read_settings),
    "labelled": ("l.jsonl", lambda file: read_labelled([file])),
    "transitions": ("t.jsonl", transitions_in),
}
PIECES = st.sampled_from(
    ["[[operator]]\n", 'name = "a"\n', "question,reference\n", '{"question": "q"}', "\n", '"', "\0",
     "[" * 2000, "9" * 5000, "NaN", "\ud800", "\u202e", "template = '{query}'", "a.b.c = 1\n", ",",
     '{"settings": {"seed": 1e999}}', '{"settings": {"server": "\\u0000"}}', "x" * 140_000]
)  # fmt: skip
BYTES = st.binary(max_size=60) | st.lists(PIECES, max_size=5).map(
    lambda pieces: "".join(pieces).encode("utf-8", "surrogatepass")
)


def read(kind: str, content: bytes, directory: Path) -> object:
    """What the reader makes of it; anything but a value or a short `UserError` is a failure."""
    name, reader = READERS[kind]
    file = directory / name
    file.write_bytes(content)
    said = ""
    with contextlib.suppress(UserError):
        try:
            return reader(file)
        except UserError as error:
            said = str(error)
            raise
    assert said.count("\n") <= 1
    assert len(said) < 2000
    return None


@pytest.mark.parametrize("kind", READERS)
@given(content=BYTES)
@FUZZ
def test_any_bytes_are_a_value_or_one_clear_line(
    kind: str, content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    read(kind, content, tmp_path_factory.getbasetemp())


PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(max_size=3),
    "int": st.integers(0, 9),
    "bool": st.booleans(),
}
ROWS = {
    "jsonl": some(
        question=st.text(), id=st.text(), split=st.just("train"), key_facts=st.just([["a"]])
    ),
    "labelled": some(answer=st.text(), label=st.just("refusal"), kind=st.text()),
    "transitions": st.fixed_dictionaries(
        {
            item.name: PLAIN.get(str(item.type), st.floats(-1, 1) | st.just({}) | ANYTHING)
            for item in fields(Transition)
        }
    ),
    "config": some(seed=st.integers(), server=st.text(), cache=st.text(), timeout=st.floats()),
}


@pytest.mark.parametrize("kind", ROWS)
@given(data=st.data())
@FUZZ
def test_any_row_is_a_value_or_one_clear_line(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    row = data.draw(ROWS[kind])
    try:
        content = json.dumps(row).encode()
    except ValueError:  # a number of thousands of digits, which Python does not write either
        return
    read(kind, content, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("kind", ["jsonl", "csv", "toml", "config", "labelled"])
def test_pipes_devices_directories_and_large_files_end_at_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, reader = READERS[kind]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for path in (tmp_path / "pipe", tmp_path / "directory", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(UserError, match="it is not a file"):
            reader(path)
    with pytest.raises(UserError, match="cannot read"):
        reader(tmp_path / "a\0b")
    large = tmp_path / name
    with large.open("wb") as file:
        file.truncate(2**30)  # a line of a gigabyte that takes no place on the disk
    with pytest.raises(UserError, match="larger than"):
        reader(large)


def test_a_line_of_a_log_is_bounded_and_the_log_is_not(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"12345\n" * 100)
    lines = untrusted.read_lines(file, "the log", most_bytes=10)
    assert len(list(lines)) == 100
    file.write_bytes(b"x" * 100)
    with pytest.raises(UserError, match="has a line of more than"):
        list(untrusted.read_lines(file, "the log", most_bytes=10))
