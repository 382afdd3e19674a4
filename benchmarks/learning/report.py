"""The comparison of learners as a table and a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from query_mutator.base.pictures import figure
from query_mutator.base.tables import layout
from query_mutator.evaluation.statistics import paired_differences

OURS = "ours"
FEWEST_SEEDS = 5
"""Resampling fewer tells nothing."""


def summarised(
    shares: Mapping[str, npt.NDArray[np.float64]], budgets: Sequence[int]
) -> dict[str, dict[str, Any]]:
    """For each learner and budget the mean share of the gap, and our lead with its interval.

    The ends of an interval are None where there are too few seeds for one.
    """
    results: dict[str, dict[str, Any]] = {}
    for name, rows in shares.items():
        results[name] = {"mean": rows.mean(0).tolist(), "seeds": rows.tolist(), "ours_ahead": []}
        if name == OURS:
            continue
        family = {
            str(budget): shares[OURS][:, column] - rows[:, column]
            for column, budget in enumerate(budgets)
        }
        for difference in paired_differences(family).values():
            known = len(rows) >= FEWEST_SEEDS and math.isfinite(difference.low)
            bounds = (difference.low, difference.high) if known else (None, None)
            results[name]["ours_ahead"].append([difference.mean, *bounds])
    return results


def as_text(results: Mapping[str, Any], budgets: Sequence[int], seeds: range) -> str:
    """Shares of the gap between random and the contextual optimum, on held-out questions."""
    head = (
        f"share of the gap between random (0) and the contextual optimum (1), held-out questions, "
        f"{named(seeds)}; in brackets our lead with its 95 % interval (all budgets together)"
    )
    rows = [["steps", *(f"{budget:,}" for budget in budgets)]]
    for name, result in results.items():
        cells = []
        for column in range(len(budgets)):
            cell = f"{result['mean'][column]:.3f}"
            if result["ours_ahead"]:
                mean, low, high = result["ours_ahead"][column]
                interval = "no interval" if low is None else f"{low:+.3f}..{high:+.3f}"
                cell += f" ({mean:+.3f} {interval})"
            cells.append(cell)
        rows.append([name, *cells])
    return f"{head}\n{layout(rows)}"


def named(seeds: range) -> str:
    """The seeds in words."""
    return f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"


def draw(results: Mapping[str, Any], budgets: Sequence[int], path: Path) -> Path:
    """Learning curves with standard errors over seeds, as a PNG."""
    with figure(path, (8, 4.5)) as (_, [axes]):
        for name, result in results.items():
            rows = np.array(result["seeds"])
            error = rows.std(0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else None
            axes.errorbar(
                budgets, rows.mean(0), error, label=name, marker="o", markersize=4, capsize=2,
                linewidth=2.5 if name == OURS else 1.2,
            )  # fmt: skip
        axes.axhline(0.9, color="0.6", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
        axes.minorticks_off()
        axes.set_xlabel("environment steps")
        axes.set_ylabel("share of the gap, random to optimum")
        axes.set_title("Learning on a simulated task with a known optimum (held-out questions)")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return path
