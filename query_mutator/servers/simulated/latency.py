"""How long the simulated models take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist

from query_mutator.servers.simulated.answers import stable_uniform

_STANDARD_NORMAL = NormalDist()


class Latency:
    """Latencies of calls: constant, lognormal, or recorded ones played again in order.

    Recorded ones apart, a latency depends on the seed and on the call's content alone, so that the
    order in which calls arrive changes nothing.
    """

    def __init__(
        self,
        *,
        mean_s: float,
        sigma: float,
        recorded_s: Sequence[float] | None,
        seconds_per_token: float,
        seed: int,
    ) -> None:
        self._mean_s = mean_s
        self._sigma = sigma
        self._recorded_s = itertools.cycle(recorded_s) if recorded_s else None
        self._seconds_per_token = seconds_per_token
        self._seed = seed

    def of_call(self, content: str, output_tokens: int) -> float:
        """Return the seconds for which a call holds its slot."""
        return self._base_s(content) + self._seconds_per_token * output_tokens

    def _base_s(self, content: str) -> float:
        if self._recorded_s is not None:
            return next(self._recorded_s)
        if not self._sigma or not self._mean_s:
            return self._mean_s
        # The mean of exp(N(mu, sigma)) is exp(mu + sigma^2 / 2).
        mu = math.log(self._mean_s) - self._sigma**2 / 2
        deviate = _STANDARD_NORMAL.inv_cdf(stable_uniform("latency", self._seed, content))
        return math.exp(mu + self._sigma * deviate)
