"""How long the simulated models take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

from query_mutator.servers.simulated.answers import stable_uniform

_STANDARD_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Latencies of calls: constant, lognormal, or recorded ones played again in order.

    Recorded ones apart, a latency depends on the seed and on the call's content alone, so that the
    order in which calls arrive changes nothing.
    """

    mean_s: float
    sigma: float
    recorded_s: Iterator[float] | None
    seconds_per_token: float
    seed: int

    def of_call(self, content: str, output_tokens: int) -> float:
        """Return the seconds for which a call holds its slot."""
        return self._base_s(content) + self.seconds_per_token * output_tokens

    def _base_s(self, content: str) -> float:
        if self.recorded_s is not None:
            return next(self.recorded_s)
        if not self.sigma or not self.mean_s:
            return self.mean_s
        # The mean of exp(N(mu, sigma)) is exp(mu + sigma^2 / 2).
        mu = math.log(self.mean_s) - self.sigma**2 / 2
        deviate = _STANDARD_NORMAL.inv_cdf(stable_uniform("latency", self.seed, content))
        return math.exp(mu + self.sigma * deviate)
