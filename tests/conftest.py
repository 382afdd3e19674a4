"""Parts the tests share: the real encoder, a simulated server, and models connected to it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from query_mutator.data import Question, load_questions, split_questions
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.models import encoders
from query_mutator.models import settings as model_settings
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.encoders import Encoder, load_encoder
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models
from query_mutator.models.settings import ModelSettings, Pauses
from query_mutator.objectives import Weights, load_objective
from query_mutator.operators import Operator, shipped_operators
from query_mutator.runs.checkpoints import POLICY, Checkpoint
from query_mutator.runs.directory import RunDirectory
from query_mutator.servers.simulated import SimulatedServer, answer_from_questions
from tests import embedding, nightly  # noqa: F401 - how many random examples are tried

SIMULATED_MODELS: dict[str, Any] = {"mutator_model": "qwen2.5:3b", "target_model": "llama3.2:3b"}
SIMULATED_FLAGS = ["--mutator-model", "qwen2.5:3b", "--target-model", "llama3.2:3b"]
FEW_QUESTIONS = Path(__file__).parent / "golden" / "questions.jsonl"
"""24 for training and 8 held out: to read or to embed the shipped ones takes longer."""
SHORT_PAUSES = Pauses(
    backoff_first_s=0.05,
    backoff_limit_s=0.8,
    retry_after_limit_s=6.0,
    probe_first_s=0.05,
    probe_limit_s=1.5,
    told_after_s=0.1,
    embedding_s=(0.05, 0.1, 0.2, 0.4),
)
"""A tenth of the usual: what is waited between two attempts is no part of what is tested."""


def last_checkpoint(run: Path) -> Checkpoint:
    """The last checkpoint of a run, read as the program reads it."""
    return RunDirectory(run).checkpoints.newest(tensor_bytes=2**30)


def weights(run: Path) -> dict[str, torch.Tensor]:
    """The policy of a run, by the names of its tensors."""
    tensors = last_checkpoint(run).tensors
    return {name: value for name, value in tensors.items() if name.startswith(POLICY)}


def same_weights(left: Path, right: Path) -> bool:
    first, second = weights(left), weights(right)
    return all(torch.equal(first[name], second[name]) for name in first | second)


torch.set_num_threads(1)
# Whoever starts the tests in the background ignores Ctrl-C, and what they start would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's response cache, or another test's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache-home"))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the commands too, which have no flag for it."""
    monkeypatch.setattr(model_settings, "PAUSES", SHORT_PAUSES)


@pytest.fixture(scope="session", autouse=True)
def _texts_are_embedded_once() -> Iterator[None]:
    """Most of the time of a small run went into texts that another test had embedded before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoders, "_packaged_embedder", embedding.remembering)
        yield


@pytest.fixture
def embeds_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """For runs of which each must come to the same embeddings by itself."""
    monkeypatch.setattr(encoders, "_packaged_embedder", embedding.packaged)


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    return load_encoder("minilm")


@pytest.fixture(scope="session")
def train_questions() -> list[Question]:
    return split_questions(load_questions())[0]


@pytest.fixture(scope="session")
def operators() -> list[Operator]:
    return shipped_operators()


@pytest.fixture
def server() -> Iterator[SimulatedServer]:
    """Eight slots, no latency, and answers whose quality depends on how one asks."""
    with SimulatedServer(slots=8, answer=answer_from_questions(DEFAULT_FILE)) as running:
        yield running


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small run, trained once, and the address of the server it was trained on."""
    from tests.test_training import train

    path = tmp_path_factory.mktemp("trained") / "run"
    answer = answer_from_questions(DEFAULT_FILE)
    with SimulatedServer(slots=8, answer=answer) as running:
        assert train(running, path) == 0
        return path, running.url


@pytest.fixture
def run(trained: tuple[Path, str], server: SimulatedServer, tmp_path: Path) -> Path:
    """A run of the test's own, as if it had been trained on the test's server."""
    path, url = trained
    copied = shutil.copytree(path, tmp_path / "run")
    config = copied / "config.json"
    config.write_text(config.read_text().replace(url, server.url).replace(str(path), str(copied)))
    return copied


@pytest.fixture
def models_for(encoder: Encoder) -> Iterator[Callable[..., Models]]:
    """Connects to a server; every connection is closed after the test."""
    opened: list[Models] = []

    def make(
        server: SimulatedServer, *, retries: int = 0, timeout_s: float = 10.0, **roles: Any
    ) -> Models:
        settings = ModelSettings(
            server.url,
            timeout_s=timeout_s,
            load_timeout_s=timeout_s,
            retries=retries,
            **SIMULATED_MODELS,
        )
        connection = connect(settings)
        client = ModelClient(connection.backends, settings)
        models = Models(client, Roles(**SIMULATED_MODELS, **roles), encoder, connection)
        opened.append(models)
        server.reset_stats()
        return models

    yield make
    for models in opened:
        models.close()


@pytest.fixture
def make_env(
    train_questions: list[Question], operators: list[Operator]
) -> Callable[..., QueryMutationEnv]:
    """An environment on the shipped questions, with the shipped operators."""
    objective = load_objective("answer", Weights())

    def make(models: Models, **options: Any) -> QueryMutationEnv:
        options = {"questions": train_questions, "operators": operators, **options}
        options.setdefault("objective", objective)
        return QueryMutationEnv(models=models, **options)

    return make
