"""What learners gain on unseen questions, and how often they do harm: as text and as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.learning.report import FEWEST_SEEDS, OURS, named
from benchmarks.learning.tasks import Judged
from query_mutator.base.pictures import figure
from query_mutator.base.tables import layout
from query_mutator.evaluation.statistics import paired_differences

Judgements = Mapping[str, Sequence[Sequence[Judged]]]
"""Of each learner, a row for each seed, in it each budget."""


def summarised(judgements: Judgements) -> dict[str, dict[str, Any]]:
    """By learner, at each budget: mean gain and its error, seeds below 0, what is left alone.

    And how far ours is ahead, with an interval over seeds for all budgets of a pair together; the
    ends are None where there are too few seeds for one.
    """
    gains = {
        name: np.array([[one.value for one in row] for row in rows])
        for name, rows in judgements.items()
    }
    results = {}
    for name, rows in judgements.items():
        values = gains[name]
        alone = np.array([[one.left_alone for one in row] for row in rows])
        several = len(values) > 1
        error = (values.std(0, ddof=1) / math.sqrt(len(values))).tolist() if several else None
        results[name] = {
            "gain": values.mean(0).tolist(),
            "error": error,
            "below_0": (values < 0).mean(0).tolist(),
            "left_alone": alone.mean(0).tolist(),
            "left_alone_least": alone.min(0).tolist(),
            "seeds": values.tolist(),
            "ours_ahead": _leads(gains[OURS] - values) if name != OURS else [],
        }
    return results


def _leads(differences: npt.NDArray[np.float64]) -> list[list[float | None]]:
    family = {str(column): values for column, values in enumerate(differences.T)}
    leads: list[list[float | None]] = []
    for found in paired_differences(family).values():
        known = len(differences) >= FEWEST_SEEDS and math.isfinite(found.low)
        leads.append([found.mean, *((found.low, found.high) if known else (None, None))])
    return leads


def as_text(
    results: Mapping[str, Any], budgets: Sequence[int], seeds: range, questions: int
) -> str:
    """A table for each measure, a row for each learner."""
    steps = [f"{budget:,}" for budget in budgets]

    def table(head: str, cells: Mapping[str, Sequence[str]]) -> str:
        rows = [["steps", *steps], *([name, *of_name] for name, of_name in cells.items())]
        return f"{head}\n{layout(rows)}"

    parts = [
        table(
            f"gain on {questions:,} unseen questions, {named(seeds)}; ± is the standard error over "
            "seeds",
            {name: _gains(result) for name, result in results.items()},
        ),
        table("share of seeds below 0", _shares(results, "below_0")),
        table("share of the questions left alone", _shares(results, "left_alone")),
        table("the same, the seed that leaves least alone", _shares(results, "left_alone_least")),
    ]
    ahead = {name: result["ours_ahead"] for name, result in results.items() if name != OURS}
    if ahead:
        parts.append(
            table(
                "our lead; in brackets 95 % over seeds, for all budgets of a row together",
                {name: [_lead(*lead) for lead in leads] for name, leads in ahead.items()},
            )
        )
    return "\n\n".join(parts)


def _gains(result: Mapping[str, Any]) -> list[str]:
    if result["error"] is None:
        return [f"{gain:+.3f}" for gain in result["gain"]]
    pairs = zip(result["gain"], result["error"], strict=True)
    return [f"{gain:+.3f} ± {error:.3f}" for gain, error in pairs]


def _shares(results: Mapping[str, Any], key: str) -> dict[str, list[str]]:
    return {name: [f"{share:.2f}" for share in result[key]] for name, result in results.items()}


def _lead(mean: float, low: float | None, high: float | None) -> str:
    return f"{mean:+.3f}" if low is None else f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def draw(results: Mapping[str, Any], budgets: Sequence[int], title: str, path: Path) -> Path:
    """Gain by budget with standard errors, and the share of seeds below 0, as a PNG."""
    with figure(path, (11, 4.5), panels=2) as (drawn, [gains, below]):
        for name, result in results.items():
            style = {
                "label": name, "marker": "o", "markersize": 4,
                "linewidth": 2.5 if name == OURS else 1.2,
            }  # fmt: skip
            gains.errorbar(budgets, result["gain"], result["error"], capsize=2, **style)
            below.plot(budgets, result["below_0"], **style)
        gains.axhline(0, color="0.6", linewidth=0.8)
        gains.set_ylabel("gain over the question unchanged")
        below.set_ylabel("share of seeds below 0")
        below.set_ylim(-0.03, 1.03)
        for axes in (gains, below):
            axes.set_xscale("log")
            axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
            axes.minorticks_off()
            axes.set_xlabel("rewards learned from")
            axes.grid(alpha=0.25)
        gains.legend(frameon=False, fontsize=8)
        drawn.suptitle(title)
    return path
