"""The documents are true: examples run, metrics are explained, files are where they say."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
from pathlib import Path

import pytest

from training.metrics import METRICS, markdown
from training.settings import build_parser

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [
    "command_line",
    "model_client.connect",
    "model_client.dialects.ollama",
    "objectives.base",
    "objectives.facts",
    "objectives.refusal",
    "operators.operator",
    "servers.simulated",
    "training.settings",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def test_the_metric_page_is_made_from_the_metrics() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text() == markdown()
    assert len({metric.tag for metric in METRICS}) == len(METRICS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_training_commands_in_documents_parse(document: Path) -> None:
    text = document.read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?:\$ )?python train_query_mutator\.py.*$", text, re.MULTILINE):
        words = shlex.split(line, comments=True)
        build_parser("train", "").parse_args(words[words.index("train_query_mutator.py") + 1 :])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_flags_in_documents_exist(document: Path) -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", build_parser("train", "").format_help()))
    for script in ("mutate_query.py", "servers/embedded.py", "servers/simulated/__main__.py"):
        known |= set(re.findall(r"--[a-z][a-z-]+", (ROOT / script).read_text()))
    known |= {"--no-deps", "--logdir", "--seeds"}
    known |= {"--parallel", "--max-num-seqs"}  # of llama-server and vLLM
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", document.read_text()))
    assert used <= known
