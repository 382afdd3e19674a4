"""Imports go one way: `lint-imports` holds the layers of pyproject.toml."""

from __future__ import annotations

import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("query_mutator", "ppo", "batching")
NOT_COPIED = shutil.ignore_patterns("__pycache__")
LINT = Path(sys.executable).with_name("lint-imports")


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-cache", "--no-logo"], cwd=tree, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code, to be damaged."""
    tree = tmp_path_factory.mktemp("house")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=NOT_COPIED)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def test_the_layers_hold(house: Path) -> None:
    found = lint(house)
    assert found.returncode == 0, found.stdout
    assert "0 broken" in found.stdout


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("query_mutator/base/errors.py", "import query_mutator.models.calls", "Rooms"),
        ("query_mutator/runs/task.py", "from query_mutator.training import trainer", "Rooms"),
        ("query_mutator/training/counts.py", "import query_mutator.reports.runs", "Rooms"),
        ("ppo/steps.py", "def late() -> None:\n    import query_mutator.data", "Rooms"),
        ("query_mutator/environment/env.py", "import batching.core", "Rooms"),
        ("batching/core/table.py", "import query_mutator.runs.directory", "Batching"),
        ("query_mutator/environment/asking.py", "import ollama_utils", "Nothing"),
        ("query_mutator/english/words.py", "import query_mutator.english.spelling", "No cycle"),
    ],
)
def test_a_wrong_import_is_found(house: Path, file: str, line: str, broken: str) -> None:
    before = (house / file).read_text()
    (house / file).write_text(f"{before}\n{line}\n")
    try:
        found = lint(house)
    finally:
        (house / file).write_text(before)
    assert found.returncode == 1, found.stdout
    verdicts = [told for told in found.stdout.splitlines() if " BROKEN" in told]
    assert any(told.startswith(broken) for told in verdicts), found.stdout


def test_no_module_imports_itself_in_a_round() -> None:
    """Modules one by one: `acyclic_siblings` does not see a package import what imports it."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imported).prepare()
