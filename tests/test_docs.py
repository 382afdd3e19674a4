"""The documents are true: examples run, metrics are explained, files are where they say."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import shlex
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from query_mutator.models.backend import Backend
from query_mutator.models.calls import Call
from query_mutator.models.client import ModelClient
from query_mutator.models.http import HttpServer
from query_mutator.runs.metric_table import METRICS
from query_mutator.runs.metrics import markdown
from query_mutator.runs.settings import build_parser
from query_mutator.servers.simulated import SimulatedServer
from query_mutator.tuning.settings import build_parser as tuning_parser
from tests.test_training import train

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [
    "batching.commands.parts",
    "query_mutator.base.terminal",
    "query_mutator.evaluation.moved",
    "query_mutator.evaluation.statistics",
    "query_mutator.reports.comparison",
    "query_mutator.reports.statistics",
    "query_mutator.reports.tables",
    "query_mutator.reports.html.markup",
    "query_mutator.reports.html.scales",
    "query_mutator.reports.html.sections",
    "query_mutator.reports.html.words",
    "query_mutator.models.addresses",
    "query_mutator.models.dialects.ollama",
    "query_mutator.objectives.base",
    "query_mutator.objectives.drift",
    "query_mutator.objectives.drift.asked",
    "query_mutator.objectives.drift.numerals",
    "query_mutator.objectives.drift.reasons",
    "query_mutator.objectives.drift.wording",
    "query_mutator.objectives.consistency",
    "query_mutator.data.messing.asked",
    "query_mutator.data.messing.rows",
    "query_mutator.data.messing.slips",
    "query_mutator.data.messing.wording",
    "query_mutator.data.generate",
    "query_mutator.english.facts.amounts",
    "query_mutator.english.facts.finder",
    "query_mutator.english.facts.tokens",
    "query_mutator.english.facts.weighing",
    "query_mutator.english.facts.wordings",
    "query_mutator.english.numbers",
    "query_mutator.objectives.helpful",
    "query_mutator.objectives.judge",
    "query_mutator.objectives.refusal.detector",
    "query_mutator.models.outages",
    "query_mutator.objectives.refusal.rules",
    "query_mutator.objectives.version",
    "query_mutator.objectives.willing",
    "query_mutator.english.asides",
    "query_mutator.english.asking",
    "query_mutator.english.chat",
    "query_mutator.english.filler",
    "query_mutator.english.names",
    "query_mutator.english.spelling",
    "query_mutator.english.typing.candidates",
    "query_mutator.english.typing.channel",
    "query_mutator.english.typing.company",
    "query_mutator.english.typing.sentence",
    "query_mutator.tuning.asked_words",
    "query_mutator.english.words",
    "query_mutator.operators.edits",
    "query_mutator.operators.operator",
    "query_mutator.servers.simulated",
    "query_mutator.base.flags",
    "query_mutator.runs.metrics",
    "query_mutator.training.progress",
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


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / "docs" / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_operator_objective_and_dataset_of_the_guide_work_together(
    tmp_path: Path, server: SimulatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_operators.toml").write_text(blocks("extending.md", "toml")[0])
    (tmp_path / "my_objective.py").write_text(blocks("extending.md", "python")[0])
    (tmp_path / "my_questions.jsonl").write_text(blocks("data.md", "json")[0])
    names = {"operators": "my_operators.toml", "objective": "my_objective.py:brief"}
    names["dataset"] = "my_questions.jsonl"
    flags = [word for name, file in names.items() for word in (f"--{name}", str(tmp_path / file))]
    assert train(server, tmp_path / "run", *flags, "--only-operators", "qa,for_a_child") == 0
    lines = (tmp_path / "run" / "transitions.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["terms"]["brevity"]["why"].endswith("words")


def test_the_objective_of_the_guide_that_makes_calls_works(
    tmp_path: Path, server: SimulatedServer
) -> None:
    (tmp_path / "mine.py").write_text(blocks("extending.md", "python")[1])
    flags = ["--objective", f"{tmp_path}/mine.py:steadfast", "--num-env-steps", "16"]
    assert train(server, tmp_path / "run", *flags) == 0
    lines = (tmp_path / "run" / "transitions.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["terms"]["steadfast"]["why"] == "cosine, when asked again"


def test_the_dialect_of_the_guide_speaks_to_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guide's dialect speaks llama.cpp's own /completion; a small server answers it."""
    code = blocks("extending.md", "python")[2]
    module: dict[str, Any] = {}
    exec(compile(code, "extending.md", "exec"), module)
    dialect = module["LlamaCompletionDialect"]()

    class Completion(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"total_slots": 1, "model_alias": "tiny"})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer({"content": f"{asked['n_predict']} tokens", "stop_type": "limit"})

        def answer(self, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Silence."""

    with HTTPServer(("127.0.0.1", 0), Completion) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        http = HttpServer(f"http://127.0.0.1:{serving.server_port}")
        assert dialect.understood_by(http, timeout_s=5)
        assert dialect.list_models(http) == {"tiny": ""}
        client = ModelClient([Backend(http, dialect, {"tiny": ""})])
        call = Call("answer", "tiny", ({"role": "user", "content": "Hello"},), max_tokens=7)
        outcome = client.run([call], max_workers=1)[0]
        client.close()
        serving.shutdown()
    assert (outcome.text, outcome.reply.cut) == ("7 tokens", True)


@pytest.mark.slow
def test_the_python_of_the_batching_guide_runs() -> None:
    module: dict[str, Any] = {}
    exec(compile(blocks("batching.md", "python")[0], "batching.md", "exec"), module)
    assert module["vectors"].shape == (2, 384)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_flags_in_documents_exist(document: Path) -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", build_parser("train", "").format_help()))
    known |= set(re.findall(r"--[a-z][a-z-]+", tuning_parser("train-mutator", "").format_help()))
    for script in (
        "query_mutator/commands/mutate.py",
        "query_mutator/commands/evaluate.py",
        "query_mutator/commands/export_adapter.py",
        "query_mutator/bench/command.py",
        "benchmarks/faithfulness.py",
        "benchmarks/learning/__main__.py",
        "benchmarks/operator_table/__main__.py",
        "query_mutator/reports/html/__init__.py",
        "query_mutator/servers/embedded.py",
        "query_mutator/servers/simulated/__main__.py",
        "benchmarks/reading.py",
        "benchmarks/tuning.py",
        "benchmarks/scoring/agreement.py",
        "benchmarks/scoring/drift.py",
        "benchmarks/scoring/facts.py",
        "query_mutator/reports/analyze.py",
        "query_mutator/reports/extract.py",
        "query_mutator/reports/sweep.py",
        "benchmarks/packing.py",
        "benchmarks/twins.py",
        "batching/streaming/puzzle_server.py",
        *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("batching/commands/*.py")),
    ):
        known |= set(re.findall(r"--[a-z][a-z-]+", (ROOT / script).read_text()))
    known |= {"--no-deps", "--logdir", "--seeds"}
    known |= {"--parallel", "--max-num-seqs"}  # of llama-server and vLLM
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", document.read_text()))
    assert used <= known
