"""The response cache: what is kept, for whom, and what is not."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.cli import main
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.models import cache as cache_module
from query_mutator.models.cache import ResponseCache, cache_key, default_cache_file
from query_mutator.models.calls import Call, Reply
from query_mutator.models.roles import Roles
from query_mutator.servers.simulated import Fault, SimulatedServer, answer_from_questions
from tests.conftest import SIMULATED_FLAGS, same_weights
from train_query_mutator import main as train

CALL = Call("answer", "m", ({"role": "user", "content": "Why?"},), max_tokens=9)
FLAGS = ["--num-processes", "4", "--num-steps", "4", "--num-env-steps", "32", "--batch-size", "4"]
FLAGS += ["--no-eval", "--eval-interval", "0", "--num-questions", "48"]


def run(server: SimulatedServer, path: Path, *flags: str) -> dict[str, float]:
    argv = ["--server", server.url, *SIMULATED_FLAGS, *FLAGS, "--run-dir", str(path), *flags]
    assert train(argv) == 0
    summary: dict[str, float] = json.loads((path / "summary.json").read_text())
    return summary


def test_a_second_run_makes_no_call_and_learns_the_same(tmp_path: Path) -> None:
    answer = answer_from_questions(DEFAULT_FILE)
    with SimulatedServer(answer=answer) as server:
        first = run(server, tmp_path / "first")
    with SimulatedServer(answer=lambda *_: "never asked", port=server.port) as server:
        second = run(server, tmp_path / "second")
        assert server.stats.generation_calls == 0, "nor a warm-up"
    assert first["model_calls"] > 0
    assert second["model_calls"] == 0
    # A call that was made ahead in vain is not asked for again.
    in_vain = first["cache_hits"] + first["model_calls"] - second["cache_hits"]
    assert 0 <= in_vain <= 8
    logs = [(tmp_path / name / "transitions.jsonl").read_bytes() for name in ("first", "second")]
    assert logs[0] == logs[1]
    assert same_weights(tmp_path / "first", tmp_path / "second")


def test_no_cache_and_another_file_keep_runs_apart(tmp_path: Path) -> None:
    with SimulatedServer() as server:
        calls = run(server, tmp_path / "a", "--no-cache")["model_calls"]
        assert not default_cache_file().exists()
        assert run(server, tmp_path / "b", "--cache", str(tmp_path / "x.sqlite"))["model_calls"]
        assert run(server, tmp_path / "c", "--cache", str(tmp_path / "y"))["model_calls"] == calls
        again = run(server, tmp_path / "d", "--cache", str(tmp_path / "x.sqlite"))
        assert again["model_calls"] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"messages": ({"role": "user", "content": "Why not?"},)},
        {"max_tokens": 10},
        {"seed": 1},
        {"num_ctx": 4096},
        {"stop": ("\n",)},
        {"temperature": 0.1},
    ],
)
def test_the_key_covers_all_that_shapes_the_answer(change: dict[str, object]) -> None:
    other = dataclasses.replace(CALL, **change)  # type: ignore[arg-type]
    assert cache_key("ollama", "d", CALL) != cache_key("ollama", "d", other)


def test_the_key_tells_servers_and_weights_apart_but_not_purposes() -> None:
    key = cache_key("ollama", "d", CALL)
    assert key != cache_key("openai", "d", CALL)
    assert key != cache_key("ollama", "e", CALL)
    assert key == cache_key("ollama", "d", dataclasses.replace(CALL, purpose="judge"))


def test_failures_and_truncated_answers_are_not_kept(tmp_path: Path) -> None:
    with SimulatedServer() as server:
        server.set_faults(
            Fault("unfinished", calls=tuple(range(9, 999, 3))),
            Fault("bad_request", calls=tuple(range(10, 999, 3))),
        )
        summary = run(server, tmp_path / "run", "--retries", "0")
        kept = ResponseCache(default_cache_file()).stats()["replies"]
    assert summary["failed_calls"] > 0
    assert kept == summary["model_calls"] - summary["failed_calls"]


def test_many_processes_share_one_file(tmp_path: Path) -> None:
    file = tmp_path / "shared.sqlite"
    code = (
        "import sys; from query_mutator.models.cache import ResponseCache\n"
        "from query_mutator.models.calls import Reply\n"
        "cache = ResponseCache(sys.argv[1]); start = int(sys.argv[2])\n"
        "for n in range(start, start + 300):\n"
        "    cache.put(n.to_bytes(8, 'big'), 'm', Reply(str(n)))\n"
        "    assert cache.get(n.to_bytes(8, 'big')).text == str(n)\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(file), str(start)])
        for start in (0, 150, 300)
    ]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert ResponseCache(file).stats()["replies"] == 600


PROCESSES, FILES, OPENINGS = 8, 25, 10
OPENS = """
import sys
from query_mutator.models.cache import ResponseCache
from query_mutator.models.calls import Reply
folder, number, files, openings = sys.argv[1], *map(int, sys.argv[2:])
for file in range(files):
    print(flush=True)  # ready; all begin with a new file at once
    sys.stdin.readline()
    for opening in range(openings):
        cache = ResponseCache(f"{folder}/{file}.sqlite")
        key = b"%d %d" % (number, opening)
        cache.put(key, "m", Reply(str(number)))
        assert cache.get(key).text == str(number)
        cache.close()
"""


def test_2000_openings_of_new_caches_by_eight_processes_at_once(tmp_path: Path) -> None:
    numbers = [str(FILES), str(OPENINGS)]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS, str(tmp_path), str(number), *numbers],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(PROCESSES)
    ]  # fmt: skip
    for _ in range(FILES):
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        for process in started:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has failed, and says why below
                process.stdin.write("\n")
                process.stdin.flush()
    said = [process.communicate()[1] for process in started]
    assert said == [""] * PROCESSES
    kept = [ResponseCache(tmp_path / f"{file}.sqlite").stats()["replies"] for file in range(FILES)]
    assert kept == [PROCESSES * OPENINGS] * FILES


def test_a_new_file_that_another_process_is_making_a_cache_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        other.close()

    monkeypatch.setattr(time, "sleep", pause)
    with contextlib.closing(ResponseCache(path)) as cache:
        cache.put(b"a", "m", Reply("x"))
        assert cache.get(b"a") == Reply("x")
    assert len(pauses) == 1


def test_a_file_beside_it_may_go_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.sqlite"
    ResponseCache(path).close()
    look = Path.stat

    def look_once(file: Path, **options: bool) -> os.stat_result:
        found = look(file, **options)
        if file.name.endswith("-wal"):
            file.unlink()
        return found

    (tmp_path / "cache.sqlite-wal").touch(mode=0o644)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", look_once)
        cache = ResponseCache(path)
    cache.put(b"a", "m", Reply("x"))
    assert cache.get(b"a") == Reply("x")


def test_a_passing_lock_costs_what_was_asked_meanwhile_and_not_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_module, "BUSY_TIMEOUT_MS", 50)
    cache = ResponseCache(tmp_path / "cache.sqlite")
    cache.put(b"a", "m", Reply("x"))
    other = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None)
    for name in (b"b", b"c"):
        other.execute("BEGIN IMMEDIATE")
        cache.put(name, "m", Reply("y"))
        assert cache.get(b"a") == Reply("x")
        other.execute("ROLLBACK")
        assert cache.get(name) is None
        cache.put(name, "m", Reply("z"))
        assert cache.get(name) == Reply("z")
    assert len(caplog.records) == 1
    assert "database is locked" in caplog.text


def test_a_lock_that_stays_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ResponseCache(tmp_path / "cache.sqlite")
    other = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None)

    def patience() -> int:
        return int(cache._connection().execute("PRAGMA busy_timeout").fetchone()[0])

    cache._patience_ms = 50
    other.execute("BEGIN IMMEDIATE")
    waited = []
    for _ in range(3):
        cache.put(b"a", "m", Reply("x"))
        waited.append(patience())
    other.execute("ROLLBACK")
    for _ in range(2):
        cache.put(b"a", "m", Reply("x"))
    assert waited == [50, 0, 0]
    assert patience() == cache_module.BUSY_TIMEOUT_MS


def damage(path: Path) -> None:
    """Writes nonsense over a cache, but for the header and the schema on its first page."""
    content = path.read_bytes()
    assert len(content) > 8192
    path.write_bytes(content[:4096] + b"\xaa" * (len(content) - 4096))


def test_a_damaged_cache_can_be_cleared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cache.sqlite"
    for broken in (damage, lambda path: path.write_bytes(path.read_bytes()[:5000])):
        with contextlib.closing(ResponseCache(path)) as cache:
            for number in range(99):
                cache.put(bytes([number]), "m", Reply("x" * 500))
        broken(path)
        (tmp_path / "cache.sqlite-wal").write_bytes(b"left by a killed process")
        capsys.readouterr()
        assert main(["cache", "clear", "--cache", str(path)]) == 0
        assert "was damaged and is removed" in capsys.readouterr().out
        assert not list(tmp_path.iterdir())
    assert ResponseCache(path).stats()["replies"] == 0


def test_a_damaged_file_in_the_place_of_the_cache_can_be_cleared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = default_cache_file()
    ResponseCache(path).close()
    path.write_bytes(path.read_bytes()[:100] + b"\xaa" * 8000)
    assert main(["cache", "stats"]) == 2
    assert "query-mutator cache clear" in capsys.readouterr().err
    assert main(["cache", "clear"]) == 0
    assert not path.exists()


def test_a_damaged_file_that_may_be_another_s_is_not_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes, other, both = (tmp_path / name for name in ("notes.txt", "other.db", "both.db"))
    notes.write_text("not a database at all, but notes " * 200)
    for file, tables in ((other, ("mine (x)",)), (both, (cache_module.TABLE, "mine (x)"))):
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
            for table in tables:
                connection.execute(f"CREATE TABLE {table}")
            connection.execute("INSERT INTO mine VALUES (zeroblob(9000))")
        content = file.read_bytes()
        file.write_bytes(content[:100] + b"\xaa" * 8 + content[108:])
    for file in (notes, other, both):
        before = file.read_bytes()
        assert main(["cache", "clear", "--cache", str(file)]) == 2
        said = capsys.readouterr().err
        assert "cannot use the cache" in said
        assert "cache clear" not in said
        assert file.read_bytes() == before


def test_the_file_is_private_to_the_user(tmp_path: Path) -> None:
    ResponseCache(tmp_path / "deep" / "cache.sqlite").close()
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "deep" / "cache.sqlite").stat().st_mode) == 0o600


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("these are my notes, not a database at all")
    with pytest.raises(UserError, match="--no-cache"):
        ResponseCache(other)
    assert other.read_text().startswith("these are my notes")
    with pytest.raises(UserError, match="cannot use the cache"):
        ResponseCache(other / "below")
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="has format 99"):
        ResponseCache(newer)


def test_a_cache_that_fails_in_mid_run_is_said_once_and_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ResponseCache(tmp_path / "cache.sqlite")
    cache.put(b"a", "m", Reply("x"))
    with sqlite3.connect(tmp_path / "cache.sqlite") as connection:
        connection.execute("DROP TABLE responses")
    for _ in range(3):
        cache.put(b"b", "m", Reply("y"))
        assert cache.get(b"a") is None
    assert len(caplog.records) == 1


def test_stats_and_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cache.sqlite"
    assert main(["cache", "stats", "--cache", str(file)]) == 2
    cache = ResponseCache(file)
    cache.put(b"a", "llama", Reply("x"))
    cache.put(b"b", "llama", Reply("y"))
    cache.close()
    capsys.readouterr()
    assert main(["cache", "stats", "--cache", str(file)]) == 0
    assert "2 replies" in capsys.readouterr().out
    assert main(["cache", "clear", "--cache", str(file)]) == 0
    assert ResponseCache(file).stats()["replies"] == 0
    assert main(["cache", "compact"]) == 2


def test_a_file_that_cannot_be_cleared_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cache.sqlite"
    ResponseCache(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE responses")
        connection.execute("CREATE VIEW responses AS SELECT 1 AS model")
    assert main(["cache", "clear", "--cache", str(path)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "cannot use the cache" in said[0]


def test_runs_of_any_seed_share_the_answers_of_calls_that_do_not_sample() -> None:
    one, other = (Roles("mutator", "target", seed=seed) for seed in (1, 2))
    messages = [{"role": "user", "content": "capital of spain??"}]
    assert one.mutation_call(messages, seed=3) == other.mutation_call(messages, seed=4)
    assert one.answer_call("Who?", seed=3) == other.answer_call("Who?")
    assert one.judge_call("Which?") == other.judge_call("Which?")
    sampling = dataclasses.replace(one, temperature_answer=0.7)
    assert sampling.answer_call("Who?", seed=3) != sampling.answer_call("Who?", seed=4)


def test_a_file_of_another_kind_is_left_as_it_is(tmp_path: Path) -> None:
    page, other, view = (tmp_path / name for name in ("page.html", "other.db", "view.db"))
    page.write_text("<html></html>" * 100)
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()
    with contextlib.closing(sqlite3.connect(view)) as connection:
        connection.execute("CREATE VIEW responses AS SELECT x'00' AS key, '{}' AS reply")
        connection.commit()
    for file in (page, other, view):
        file.chmod(0o644)
        before = file.read_bytes()
        with pytest.raises(UserError, match="cannot use the cache"):
            ResponseCache(file)
        assert file.read_bytes() == before
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
