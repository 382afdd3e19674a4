"""Runs do not need what only Unix has, nor a terminal that can show every text."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.base.locks import LOCK
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.models.cache import ResponseCache
from query_mutator.runs.directory import RunDirectory
from query_mutator.servers.simulated import SimulatedServer, answer_from_questions
from tests.conftest import SIMULATED_FLAGS, last_checkpoint

FLAGS = [*SIMULATED_FLAGS, "--num-processes", "4", "--num-steps", "4", "--num-env-steps", "32"]
FLAGS += ["--batch-size", "4", "--num-questions", "48", "--eval-questions", "4"]
BRIEF = ["--no-eval", "--no-report"]
LEGACY = {"PYTHONIOENCODING": "cp1252", "LC_ALL": "C", "PYTHONUTF8": "0", "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_what_only_unix_has_is_not_needed_to_train_resume_and_use_the_cache(tmp_path: Path) -> None:
    first, second, cache = (tmp_path / name for name in ("first", "second", "cache.sqlite"))
    with SimulatedServer(slots=8, answer=answer_from_questions(DEFAULT_FILE)) as server:
        flags = ["train", "--server", server.url, *FLAGS, "--cache", str(cache), "--run-dir"]
        resume = ["train", "--resume", "--num-env-steps", "48", "--run-dir", str(first), *BRIEF]
        commands = [*flags, str(first), "+", *flags, str(second), *BRIEF, "+", *resume]
        ended = subprocess.run(
            [sys.executable, "-X", "warn_default_encoding", "-m", "tests.unixless", *commands],
            env={**os.environ, **LEGACY, "PYTHONCOERCECLOCALE": "0"},
            capture_output=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr.decode("cp1252", "replace")
    assert last_checkpoint(first).state["counts"]["env_steps"] == 48
    assert (first / "report.html").exists()
    summaries = [json.loads((run / "summary.json").read_text()) for run in (first, second)]
    assert summaries[0]["model_calls"] > summaries[1]["model_calls"] == 0
    assert summaries[1]["cache_hits"] > 0
    assert not (first / LOCK).exists()
    with contextlib.closing(ResponseCache(cache)) as kept:
        assert kept.stats()["replies"] > 0


def test_the_lock_of_a_killed_process_keeps_nobody_out(tmp_path: Path) -> None:
    code = (
        "import sys; from query_mutator.runs.directory import RunDirectory\n"
        "run = RunDirectory(sys.argv[1]); run.create(); print(flush=True); sys.stdin.read()"
    )
    run = RunDirectory(tmp_path / "run")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(UserError, match="another process is writing to"):
            run.create()
        process.kill()
    assert (run.path / LOCK).exists()
    run.create()
    run.release()
    assert not list(run.path.iterdir())
