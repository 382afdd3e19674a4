"""A trained policy at work: it rewrites questions that have no reference answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from command_line import printable, show_warnings
from environment.episodes import STOP_ACTION, EpisodeView, opening_flow, rewrite_flow
from errors import UserError
from model_client.flows import Encode, FlowRunner, encode_handler
from model_client.roles import Roles
from model_client.session import Models, open_models
from operators import Operator
from ppo import ActorCritic
from training.run_directory import CONFIG, RunDirectory
from training.settings import Settings, check, parsed_fields
from training.setup import model_options


@dataclass(frozen=True)
class Rewritten:
    """What a policy made of a question."""

    question: str
    rewritten_query: str
    """What to send to the target model: the question itself where the policy left it alone."""
    operators: list[str]
    answer_before: str
    answer_after: str
    failed: str = ""
    """Why a call failed; what had been reached before it stands."""


@dataclass(frozen=True)
class TrainedPolicy:
    """A policy with what it needs to act."""

    policy: ActorCritic
    operators: list[Operator]
    view: EpisodeView

    def rewrite_flow(self, question: str, roles: Roles) -> Generator[Any, Any, Rewritten]:
        """The flow of one question: ask, let the policy choose, rewrite, ask again."""
        state, answer = yield from opening_flow(
            question, roles, max_rewrites=self.view.max_rewrites
        )
        before, chosen, failure = answer.text, list[str](), answer.reason
        while not failure and state.steps_left > 0:
            observation = yield from self.view.observe_flow(state)
            action = self.greedy(observation, self.view.action_mask(state))
            if action == STOP_ACTION:
                break
            rewrite = yield from rewrite_flow(state, action - 1, self.operators, roles)
            failure = rewrite.failure
            if not failure:
                chosen.append(self.operators[action - 1].name)
                state = rewrite.state
        return Rewritten(question, state.prompt, chosen, before, state.answer, failure)

    def greedy(self, observation: np.ndarray, mask: np.ndarray) -> int:
        """The most probable action."""
        log_probs, _ = self.policy.predict(observation[None], mask[None])
        return int(log_probs[0].argmax())


def load_run(run: RunDirectory) -> tuple[Settings, list[Operator]]:
    """The settings and the operators a run was trained with."""
    if not (run.path / CONFIG).is_file():
        raise UserError(f"{run.path} holds no run (no {CONFIG}); check --run")
    config = run.read_json(CONFIG)
    try:
        operators = [
            Operator(**{**stored, "examples": tuple(map(tuple, stored["examples"]))})
            for stored in config["operators"]
        ]
        return Settings(**config["settings"]), operators
    except (KeyError, TypeError) as error:
        raise UserError(f"{run.path / CONFIG} is damaged: {error}") from error


def load_trained(
    run: RunDirectory, settings: Settings, operators: list[Operator], dimension: int
) -> TrainedPolicy:
    """The policy of a run's last checkpoint."""
    view = EpisodeView(len(operators), dimension, settings.max_rewrites or 1)
    policy = ActorCritic(view.size, view.num_actions, settings.hidden_size)
    tensors, _ = run.load_checkpoint()
    try:
        policy.load_state_dict(tensors["policy"])
    except (RuntimeError, KeyError) as error:
        raise UserError(
            f"the policy of {run.path} does not fit its config.json; was the embedding model "
            "changed?"
        ) from error
    return TrainedPolicy(policy, operators, view)


def rewrite_questions(
    trained: TrainedPolicy, models: Models, questions: Sequence[str], *, max_workers: int | None
) -> list[Rewritten]:
    """What the policy makes of each question, in order."""
    handlers = {Encode: encode_handler(models.encoder.encode_each)}
    runner = FlowRunner(models.client, handlers, max_workers=max_workers)
    return runner.run([trained.rewrite_flow(question, models.roles) for question in questions])


def rewrite_command(
    run_path: str,
    questions: Sequence[str],
    *,
    file: str | None,
    as_json: bool,
    changes: dict[str, Any],
) -> int:
    """What `mutate_query.py` does; returns the exit code."""
    show_warnings()
    torch.set_num_threads(1)
    texts = _gather(questions, file)
    run = RunDirectory(run_path)
    settings, operators = load_run(run)
    given = {key: value for key, value in changes.items() if value is not None}
    if "batch_size" in given:
        given["use_batching"] = True
    if "server" in given:
        given |= {"mutator_server": [], "target_server": []}
    # Nothing is judged here, and the judge may be out of reach.
    settings = replace(settings, **parsed_fields(given), judge_model=None, judge_server=[])
    check(settings)
    if not run.checkpoint.is_file():
        raise UserError(f"{run.path} holds no checkpoint; is it the run you mean?")
    with open_models(**model_options(settings)) as models:
        trained = load_trained(run, settings, operators, models.encoder.dimension)
        results = rewrite_questions(trained, models, texts, max_workers=settings.max_workers)
    for result in results:
        print(json.dumps(asdict(result), ensure_ascii=False) if as_json else _shown(result))
    return 1 if any(result.failed for result in results) else 0


def _gather(questions: Sequence[str], file: str | None) -> list[str]:
    texts = [text for text in questions if text != "-"]
    lines: list[str] = []
    if file:
        try:
            lines += Path(file).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UserError(f"{file} is not UTF-8 text") from error
    piped = sys.stdin is not None and not sys.stdin.isatty()
    if "-" in questions or (not questions and not file and piped):
        lines += sys.stdin.read().splitlines() if sys.stdin else []
    texts = [text.strip() for text in [*texts, *lines] if text.strip()]
    if not texts:
        raise UserError("no question: give one as an argument, by --file, or on standard input")
    for text in texts:
        if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
            raise UserError("a question is not UTF-8 text")
    return texts


def _shown(result: Rewritten) -> str:
    rows = [("question", result.question)]
    if result.failed:
        rows += [("failed", result.failed)]
    else:
        rows += [("operators", ", ".join(result.operators) or "none: best left as it is")]
        rows += [("before", result.answer_before)]
    if result.operators:
        rows += [("rewritten", result.rewritten_query), ("after", result.answer_after)]
    return "\n".join(f"{label + ':':<11} {printable(text)}" for label, text in rows) + "\n"
