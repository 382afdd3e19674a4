"""The length cache: round trips, tears, and files that are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batching.generation.length_cache import LengthCache, LengthEntry
from benchmarks import length_cache as benchmark
from query_mutator.base.errors import UserError

LENGTHS = st.dictionaries(
    st.text(st.characters(codec=None), max_size=12), st.integers(0, 2**40), max_size=12
)
TRICKY = {'"': 1, "\\": 2, "\n": 3, "\ud800": 4, "é\u2028": 5, "": 6, '", "length": 9}': 7, "a": 8}


def written(path: Path, lengths: dict[str, int]) -> bytes:
    with LengthCache.create(path, "hash") as cache:
        cache.add_many(lengths)
    return path.read_bytes()


def read(path: Path) -> dict[str, int]:
    return dict(LengthCache.open(path, read_only=True).lengths())


@given(LENGTHS, LENGTHS)
@settings(max_examples=40, deadline=None)
def test_what_was_added_is_there_after_opening_it_again(
    first: dict[str, int], second: dict[str, int]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lengths.jsonl"
        written(path, first)
        with LengthCache.open(path, tokenizer_hash="hash") as cache:
            assert dict(cache.lengths()) == first
            for sample_id, length in second.items():
                cache.add(sample_id, length)
            assert dict(cache.lengths()) == first | second
        assert list(read(path).items()) == list((first | second).items())


@given(LENGTHS.map(lambda lengths: dict(list(lengths.items())[:2])))
@settings(max_examples=4, deadline=None)
def test_a_file_cut_off_anywhere_loses_at_most_its_last_line(lengths: dict[str, int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        whole = written(Path(directory) / "lengths.jsonl", lengths)
        torn = Path(directory) / "torn.jsonl"
        header = whole.index(b"\n") + 1
        for size in range(len(whole) + 1):
            torn.write_bytes(whole[:size])
            if size < header:
                with pytest.raises(UserError, match="the beginning of one"):
                    LengthCache.open(torn)
                assert torn.read_bytes() == whole[:size], "what is not understood is not changed"
                continue
            lines = whole[header:size].count(b"\n")
            # A line that lacks nothing but its line break is whole.
            lines += whole[size : size + 1] == b"\n" and size > header
            expected = dict(list(lengths.items())[:lines])
            assert read(torn) == expected
            with LengthCache.open(torn) as cache:
                assert dict(cache.lengths()) == expected
                cache.add("one more", 5)
            assert read(torn) == expected | {"one more": 5}


def test_a_torn_last_line_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "lengths.jsonl"
    path.write_bytes(written(path, {"a": 1, "b": 2})[:-3])
    LengthCache.open(path, read_only=True)
    assert "last line is torn" in caplog.text
    assert "1 entries are whole" in caplog.text


def test_the_lines_are_those_of_the_documented_format(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    with LengthCache.create(path, "hash", dataset_hash="data") as cache:
        cache.add_many(TRICKY)
    header, *lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert header == {"tokenizer_hash": "hash", "version": 1, "dataset_hash": "data"}
    assert lines == [
        {"sample_id": sample_id, "tokenizer_hash": "hash", "length": length}
        for sample_id, length in TRICKY.items()
    ]
    assert read(path) == TRICKY


def test_lines_of_any_json_form_are_read(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    before = written(path, {"a": 1})
    path.write_bytes(
        before + b'{"length":2, "tokenizer_hash":"hash","sample_id":"b\\u00e9"}\r\n'
        b'{"sample_id": "c", "tokenizer_hash": "hash", "length": 3, "more": [1]}'
    )
    assert read(path) == {"a": 1, "bé": 2, "c": 3}


def test_the_last_of_several_lengths_of_a_sample_counts(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    with LengthCache.create(path, "hash") as cache:
        cache.add("a", 1)
        cache.add("b", 2)
        cache.add_many([("a", 3)])
        assert cache.get("a") == 3
    cache = LengthCache.open(path)
    assert (len(cache), cache.ids(), cache.get("a"), cache.get("c")) == (2, ["a", "b"], 3, None)
    assert "a" in cache
    assert "c" not in cache
    assert list(cache.entries()) == [LengthEntry("a", 3, "hash"), LengthEntry("b", 2, "hash")]
    ids, lengths = cache.arrays()
    assert ids == ["a", "b"]
    np.testing.assert_array_equal(lengths, [3, 2])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no length cache"),
        (b"\x00\xff\n", "is no length cache"),
        (b'{"question": "why?"}\n', "is no length cache"),
        (b"[1]\n", "is no length cache"),
        (b'{"tokenizer_hash": "hash", "version": 2}\n', "of version 2"),
    ],
)
def test_a_file_of_another_kind_is_told_and_not_changed(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        LengthCache.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nonsense", "line 3 is damaged"),
        (b'{"sample_id": "b", "tokenizer_hash": "hash", "length": 01}', "line 3 is damaged"),
        (b'{"sample_id": "b", "tokenizer_hash": "hash", "length": -1}', "no length"),
        (b'{"sample_id": "b", "tokenizer_hash": "hash", "length": true}', "no length"),
        (b'{"sample_id": 5, "tokenizer_hash": "hash", "length": 1}', "no sample_id"),
        (b'{"sample_id": "b", "tokenizer_hash": "else", "length": 1}', "of another tokenizer"),
        (b'{"sample_id": "b\xff", "tokenizer_hash": "hash", "length": 1}', "line 3 is damaged"),
        (b'{"sample_id": "b\x01", "tokenizer_hash": "hash", "length": 1}', "line 3 is damaged"),
        (b'{"sample_id": "\\q", "tokenizer_hash": "hash", "length": 1}', "line 3 is damaged"),
    ],
)
def test_a_damaged_line_is_told_by_its_number(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "lengths.jsonl"
    after = written(tmp_path / "other", {"c": 1}).partition(b"\n")[2]
    content = written(path, {"a": 1}) + line + b"\n" + after
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        LengthCache.open(path)
    assert path.read_bytes() == content


def test_lengths_of_another_tokenizer_or_data_set_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    LengthCache.create(path, "one", dataset_hash="data").close()
    with pytest.raises(UserError, match=r"of another tokenizer \(one, not two"):
        LengthCache.open(path, tokenizer_hash="two")
    with pytest.raises(UserError, match="of another dataset"):
        LengthCache.open(path, tokenizer_hash="one", dataset_hash="changed")
    LengthCache.open(path, tokenizer_hash="one", dataset_hash="data").close()


def test_a_cache_is_never_created_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    before = written(path, {"a": 1})
    with pytest.raises(UserError, match="already exists"):
        LengthCache.create(path, "hash")
    assert path.read_bytes() == before


def test_a_cache_is_never_created_over_one_that_another_process_creates(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    code = (
        "import sys\n"
        "from batching.generation.length_cache import LengthCache\n"
        "from query_mutator.base.errors import UserError\n"
        "def on_event(event, arguments):\n"
        "    if event == 'tempfile.mkstemp':\n"
        "        open(sys.argv[1], 'w').write('of another')\n"
        "sys.addaudithook(on_event)\n"
        "try:\n"
        "    LengthCache.create(sys.argv[1], 'hash')\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert "already exists" in done.stdout
    assert path.read_text() == "of another"
    assert os.listdir(tmp_path) == [path.name]


def test_only_one_process_can_add_while_others_read(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    with LengthCache.create(path, "hash") as cache:
        cache.add("a", 1)
        with pytest.raises(UserError, match="another process is writing"):
            LengthCache.open(path)
        assert read(path) == {"a": 1}


def test_a_bad_length_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    with LengthCache.create(path, "hash") as cache:
        for bad in (-1, 2**41):
            with pytest.raises(ValueError, match="a length must be"):
                cache.add_many({"a": 1, "b": bad})
        with pytest.raises(TypeError):
            cache.add("a", 1.5)  # type: ignore[arg-type]
        cache.add("c", int(np.int64(4)))
    assert read(path) == {"c": 4}


WRITER = """
import sys
from batching.generation.length_cache import LengthCache

cache = LengthCache.create(sys.argv[1], "hash")
for number in range(10**9):
    cache.add_many([(f"{number}-{part}", number) for part in range(100)])
    print(number, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_it_had_added(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(50):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    told = 50 + len(process.stdout.read().splitlines())
    process.stdout.close()
    process.wait()
    with LengthCache.open(path) as cache:
        added = {f"{n}-{part}": n for n in range(told) for part in range(100)}
        assert added.items() <= cache.lengths().items()
        cache.add("after", 1)
    assert read(path)["after"] == 1


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "lengths.jsonl"
    code = (
        "import resource, signal, sys\n"
        "from batching.generation.length_cache import LengthCache\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "cache = LengthCache.create(sys.argv[1], 'hash')\n"
        "cache.add_many([('a', 1), ('b', 2)])\n"
        "try:\n"
        "    cache.add_many([(str(number), number) for number in range(100)])\n"
        "except OSError as error:\n"
        "    print(error.filename)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(path)
    assert path.read_bytes().endswith(b"\n")
    assert read(path) == {"a": 1, "b": 2}


def test_the_benchmark_tells_both_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.run(["--entries", "2000"]) == 0
    told = capsys.readouterr().out
    assert "2,000 entries" in told
    assert "written in" in told
    assert "loaded in" in told
