"""Nothing that comes from outside is run, but for the one thing that says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS_CODE = {
    "eval", "exec", "compile", "__import__", "execfile", "os.system", "os.popen", "exec_module",
    "importlib.import_module", "torch.load", "yaml.load", "np.load", "numpy.load", "joblib.load",
}  # fmt: skip
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "runpy"}
IMPORTS_BY_NAME = "importlib.import_module"
UNPICKLES_IF_ASKED = {"np.load", "numpy.load"}
"""Harmless with `allow_pickle=False`."""
ALLOWED = {
    ("query_mutator/objectives/loading.py", "exec_module"),
    ("query_mutator/bench/peers.py", IMPORTS_BY_NAME),
    ("query_mutator/cli.py", IMPORTS_BY_NAME),
    ("ppo/__init__.py", IMPORTS_BY_NAME),
}
"""--objective file.py:name runs the user's own code, and docs/reliability.md says so; libraries
that may be missing, subcommands and parts of `ppo` are imported by names that stand in the code."""


def sources() -> Iterator[Path]:
    for path in ROOT.rglob("*.py"):
        inside = path.relative_to(ROOT).parts[0]
        if inside not in {".venv", "tests", "runs"}:
            yield path


def dangers(path: Path) -> Iterator[str]:
    """What in a file could run code that its input brings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
            yield from (name for name in names if name.split(".")[0] in MODULES)
            if isinstance(node, ast.ImportFrom):
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                yield from whole & RUNS_CODE
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            keywords = {word.arg: ast.unparse(word.value) for word in node.keywords}
            last = name.rpartition(".")[2]
            found = name in RUNS_CODE or last == "exec_module"
            harmless = name in UNPICKLES_IF_ASKED and keywords.get("allow_pickle") == "False"
            if found and not harmless:
                yield last if last == "exec_module" else name
            if keywords.get("shell", "False") != "False":
                yield f"{name}(shell=True)"
            if keywords.get("trust_remote_code", "False") != "False":
                yield f"{name}(trust_remote_code=True)"


def test_nothing_is_evaluated_unpickled_or_given_to_a_shell() -> None:
    files = list(sources())
    assert len(files) > 60, "the sources are where they are looked for"
    found = {(str(path.relative_to(ROOT)), danger) for path in files for danger in dangers(path)}
    assert found == ALLOWED


def test_dangers_are_found(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    for code in (
        "eval('1')", "import pickle", "from joblib import load", "torch.load('x')",
        "os.system('x')", "np.load('x')", "np.load('x', allow_pickle=True)", "run('x', shell=True)",
        "SentenceTransformer('x', trust_remote_code=True)", "torch.load('x', weights_only=True)",
        "from torch import load", "from os import path, system as run", "import runpy",
        "from importlib import import_module", "importlib.import_module(name)",
    ):  # fmt: skip
        file.write_text(code)
        assert list(dangers(file)), code
    file.write_text("np.load('x', allow_pickle=False)")
    assert not list(dangers(file))


def test_what_runs_code_is_said_to() -> None:
    assert "runs code" in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
