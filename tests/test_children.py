"""Commands and children, whatever lies in the current directory and however they were typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from query_mutator.base.children import module_command, module_environment
from query_mutator.base.terminal import command_line


def test_a_child_takes_no_module_from_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "query_mutator").mkdir()
    (tmp_path / "query_mutator" / "__init__.py").write_text("raise SystemExit('a stranger ran')")
    ended = subprocess.run(
        module_command("query_mutator", "--version"),
        cwd=tmp_path, env=module_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("query-mutator ")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/somewhere/bin/query-mutator", ["query-mutator train", "query-mutator mutate"]),
        ("train_query_mutator.py", ["python train_query_mutator.py", "python mutate_query.py"]),
    ],
)
def test_a_command_is_told_as_this_user_would_type_it(
    typed: str, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [typed])
    assert [command_line("train"), command_line("mutate")] == told
