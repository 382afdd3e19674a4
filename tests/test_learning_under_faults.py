"""Three calls in ten fail, in every way: the run ends as asked and learns from the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.faults import FAILED_SHARE, FAILING, faults_of_every_kind, learn, main
from benchmarks.learning.learners import ours, steps_per_update
from benchmarks.learning.tasks import observe, simulated_task
from ppo import PPO, RolloutStorage, UpdateStats
from query_mutator.data import load_questions
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.models.encoders import Encoder
from query_mutator.servers.simulated import SimulatedServer, answer_from_questions
from tests.conftest import FEW_QUESTIONS, SIMULATED_FLAGS
from tests.nightly import seeds
from train_query_mutator import main as train

RUN = ["--num-processes", "8", "--num-steps", "4", "--num-env-steps", "96", "--batch-size", "8"]
RUN += ["--no-eval", "--eval-interval", "0", "--num-questions", "40", "--max-failed-share", "0.9"]
RUN += ["--timeout", "0.6", "--max-rewrites", "1"]
OPTIMIZED = ("observations", "log_probs", "values", "advantages", "returns")
"""What the optimizer computes with."""


class PoisonedPPO(PPO):
    """PPO on rollouts whose failed rows are no numbers: one in a batch would spoil the loss."""

    validity: list[np.ndarray] = []  # noqa: RUF012 - of one test, which clears it

    def update(self, storage: RolloutStorage, generator: np.random.Generator) -> UpdateStats:
        self.validity.append(storage.valid.copy())
        for name in OPTIMIZED:
            getattr(storage, name)[~storage.valid] = np.nan
        return super().update(storage, generator)


def steps_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "transitions.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "retries", [["--retries", "0", "--max-outage", "0"], []], ids=["no retries", "default"]
)
def test_a_run_with_three_in_ten_calls_failing_ends_as_asked(
    retries: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("query_mutator.training.trainer.PPO", PoisonedPPO)
    PoisonedPPO.validity.clear()
    run = tmp_path / "run"
    with SimulatedServer(slots=16, answer=answer_from_questions(DEFAULT_FILE)) as server:
        server.set_faults(*faults_of_every_kind(FAILED_SHARE, spared=40))
        argv = ["--server", server.url, *SIMULATED_FLAGS, "--run-dir", str(run), *RUN, *retries]
        assert train(argv) == 0
        struck = server.stats.faults
        calls = server.stats.generation_calls
    assert "Traceback" not in capsys.readouterr().err

    summary, lines = json.loads((run / "summary.json").read_text()), steps_of(run)
    assert summary["env_steps"] == len(lines) == 96
    failed = [line["failed"] for line in lines]
    assert summary["masked_transitions"] == sum(failed)
    assert summary["trained_transitions"] == len(failed) - sum(failed)
    if retries:
        assert sum(failed) > 0.1 * len(failed)
        assert sum(struck.values()) == pytest.approx(FAILED_SHARE * calls, rel=0.35)
        assert len(struck) > len(FAILING) / 2, "most kinds have struck"

    # The optimizer saw what the log calls valid, and nothing else: the rest was no number.
    seen = np.concatenate([valid.reshape(-1) for valid in PoisonedPPO.validity])
    assert seen.tolist() == [not one for one in failed]
    assert summary["failed_calls"] == sum(summary["failures_by_kind"].values())


def test_a_failed_row_in_a_batch_would_be_noticed() -> None:
    from ppo import ActorCritic, PPOSettings

    storage = RolloutStorage(2, 4, 3, 2)
    storage.valid[:] = True
    storage.valid[1, 2] = False
    algorithm = PoisonedPPO(ActorCritic(3, 2, 0), PPOSettings())
    assert algorithm.update(storage, np.random.default_rng(0)).trained_rows == 7
    storage.valid[1, 2] = True
    with pytest.raises((FloatingPointError, ValueError)):
        PPO.update(algorithm, storage, np.random.default_rng(0))


def test_what_is_learned_is_as_good_at_the_same_number_of_valid_steps(encoder: Encoder) -> None:
    questions = load_questions()[::4]
    observed = observe(questions, encoder)
    differences = []
    for seed in seeds(2, at_night=5):
        task = simulated_task(seed, questions, observed)
        steps = 8 * steps_per_update()
        without = task.share_of_gap(ours(task, seed, [steps])[steps].value)
        learned = learn(task, seed, steps, faults_of_every_kind(FAILED_SHARE, seed=seed))
        assert learned.failed / (learned.valid + learned.failed) > 0.2
        assert steps <= learned.valid < steps + steps_per_update()
        assert len(learned.failures_by_kind) >= 7
        differences.append(learned.share_of_gap - without)
    # The deviation of a difference is about 0.06; a policy that learned nothing is 0.6 behind.
    assert np.mean(differences) > -0.25


def test_the_command_prints_both_shares_and_their_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seeds", "1", "--updates", "1", "--dataset", str(FEW_QUESTIONS)]) == 0
    shown = capsys.readouterr().out
    assert "without faults" in shown
    assert "of the steps failed" in shown
    assert "difference" in shown
