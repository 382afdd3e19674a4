"""What the measurement of a rewriter refuses, in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.asking import check_shipped
from benchmarks.rewriter import main, tables
from query_mutator.base.errors import UserError


def test_an_adapter_that_is_not_there_is_not_measured(tmp_path: Path) -> None:
    (tmp_path / "there.gguf").touch()
    check_shipped(tmp_path / "there.gguf")
    with pytest.raises(UserError, match=r"not there .*--rewriter PATH.* --rewriter none"):
        check_shipped(tmp_path / "clarify.gguf")


def test_where_all_calls_failed_there_is_no_table() -> None:
    with pytest.raises(UserError, match="too many calls failed"):
        tables([], ["clarify", "tidy"])


def test_what_is_refused_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--operators", "nothing", "--pairs", "1"]) == 2
    told = capsys.readouterr().err
    assert "nothing" in told
    assert "Traceback" not in told
