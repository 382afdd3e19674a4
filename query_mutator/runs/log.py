"""What one rollout amounted to: its transition lines and its metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np

from query_mutator.environment.keeping import Differences
from query_mutator.environment.transition import Transition
from query_mutator.runs import tags


@dataclass
class RolloutLog:
    """Steps of a rollout as they end, in any order."""

    update: int
    first_step: int
    """The number of each environment's first step in this rollout."""
    steps: dict[tuple[int, int], Transition] = field(default_factory=dict)

    def add(self, step: int, env: int, transition: Transition) -> None:
        self.steps[step, env] = replace(
            transition, update=self.update, env=env, step=self.first_step + step
        )

    def transitions(self) -> list[Transition]:
        """Ordered by step and environment: timing leaves no trace."""
        return [transition for _, transition in sorted(self.steps.items(), key=itemgetter(0))]

    def returns(self) -> list[float]:
        """The returns of the episodes that ended, failed ones left out."""
        returns = [step.episode_return for step in self.transitions()]
        return [found for found in returns if found is not None]

    def masked(self) -> int:
        return sum(step.failed for step in self.steps.values())

    def first_failure(self) -> str:
        """Why a step failed, the first in the order of steps and environments; "" if none did."""
        return next((step.failure for step in self.transitions() if step.failed), "")

    def refused(self) -> int:
        """Rewrites that were not used."""
        return sum(bool(step.refused_rewrite) and not step.failed for step in self.steps.values())

    def dropped(self) -> int:
        """Rewrites whose answer, another one, was not kept."""
        return sum(
            step.dropped is not None and step.dropped.answer != step.answer
            for step in self.steps.values()
        )

    def pairs_of_answers(self) -> list[tuple[Differences, float]]:
        """How the answers differed that there were to choose from, and what that was worth."""
        return [
            (step.differences, step.tried_score - step.previous_score)
            for step in self.transitions()
            if step.differences and step.tried_score is not None
        ]

    def metrics(self) -> dict[str, float]:
        """What the steps themselves tell."""
        valid = [step for step in self.transitions() if not step.failed]
        actions = Counter(step.operator for step in self.steps.values())
        metrics = {tags.STOP_SHARE: actions.pop("stop", 0) / len(self.steps)}
        for name, many in actions.items():
            metrics[tags.OPERATOR_SHARE.format(name=name)] = many / len(self.steps)
        if not valid:
            return metrics
        metrics[tags.MEAN_REWARD] = _mean([step.reward for step in valid])
        if chosen := [step for step in valid if step.differences]:
            metrics[tags.KEPT_SHARE] = _mean([float(step.dropped is None) for step in chosen])
        terms: dict[str, list[float]] = defaultdict(list)
        for step in valid:
            for name, term in step.terms.items():
                terms[name].append(term.value)
        metrics |= {tags.TERM.format(name=name): _mean(found) for name, found in terms.items()}
        ended = [step for step in valid if step.episode_return is not None]
        if ended:
            last = [step.score or 0.0 for step in ended]
            returns = [step.episode_return or 0.0 for step in ended]
            metrics[tags.MEAN_RETURN] = _mean(returns)
            metrics[tags.SCORE_LAST] = _mean(last)
            metrics[tags.SCORE_UNCHANGED] = _mean(last) - _mean(returns)
        return metrics


def _mean(values: list[float]) -> float:
    return float(np.mean(values))
