"""The wheel, installed where there is no checkout, and used in another directory."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from query_mutator.base.errors import UserError
from query_mutator.base.weights import Weights
from query_mutator.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and with the libraries of this one but no sources."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    wheel = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([*pip, *wheel], check=True)
    venv.create(folder / "env", with_pip=False, symlinks=os.name != "nt")
    scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    place = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    Path(place, "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    wheels = [str(path) for path in folder.glob("*.whl")]
    subprocess.run(
        [*pip, "--python", python, "install", "--no-deps", "--ignore-installed", *wheels],
        check=True,
    )
    return scripts / "query-mutator"


def run(command: Path, *flags: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(command), *flags],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_tells_its_version_and_commands(installed: Path, tmp_path: Path) -> None:
    assert run(installed, "--version", cwd=tmp_path).stdout.startswith("query-mutator ")
    told = run(installed, "--help", cwd=tmp_path).stdout
    assert all(f"  {name} " in told for name in COMMANDS)
    wrong = run(installed, "trian", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_it_trains_evaluates_and_reports_without_a_checkout(
    installed: Path, tmp_path: Path
) -> None:
    flags = ["--server", "embedded", "--num-env-steps", "16", "--num-processes", "4"]
    flags += ["--num-steps", "2", "--max-tokens-answer", "8", "--num-questions", "8"]
    flags += ["--only-operators", "qa,tidy", "--eval-questions", "4", "--eval-interval", "0"]
    ended = run(installed, "train", *flags, "--run-dir", "run", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for name in ("report.html", "evaluation/evaluation.json", "checkpoints", "config.json"):
        assert (tmp_path / "run" / name).exists(), name
    again = run(installed, "report", "run", "-o", "page.html", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "page.html").exists()


def test_requirements_and_metadata_name_the_same_packages() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ranges = {Requirement(text).name: Requirement(text).specifier for text in metadata}
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert {requirement.name for requirement in pinned} == set(ranges)
    for requirement in pinned:
        version = str(requirement.specifier).removeprefix("==")
        assert ranges[requirement.name].contains(version), requirement.name


def test_missing_and_changed_weights_are_told_in_a_line(tmp_path: Path) -> None:
    missing = Weights("a model", "no-such==1", "no_such_package", "file", "", "0" * 64)
    with pytest.raises(UserError, match="query-mutator setup"):
        missing.find()
    missing.cached().parent.mkdir(parents=True)
    missing.cached().write_text("something else")
    with pytest.raises(UserError, match="not the expected one"):
        missing.find()


def test_setup_says_where_the_weights_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup"]) == 0
    assert capsys.readouterr().out.count(" is at ") == 2


def test_the_shipped_rewriter_is_installed(installed: Path, tmp_path: Path) -> None:
    asked = "from query_mutator.servers.rewriters import find_rewriter; print(find_rewriter(None))"
    told = run(installed.with_name("python"), "-P", "-c", asked, cwd=tmp_path).stdout
    assert "site-packages" in told
    assert "clarify.gguf" in told
