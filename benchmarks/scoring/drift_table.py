"""The shares of rewrites that cost something, by what they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmarks.scoring.drift_pairs import Labelled
from query_mutator.base.tables import layout
from query_mutator.objectives.drift.detector import CALIBRATED


def table(found: Sequence[tuple[Labelled, float]]) -> str:
    """A row for each kind and style: how many cost something, and the mean cost."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for pair, drift in sorted(found, key=lambda one: (one[0].source != "twins", one[0].kind)):
        asked = "asks something else" if pair.changed else "asks the same"
        where = "twin" if pair.source == "twins" else pair.source
        groups[asked, f"{where}s" if where == "twin" else f"rewrites ({where})"].append(drift)
        groups[asked, f"  {pair.kind}"].append(drift)
        if pair.style not in ("", "clear"):
            groups[asked, f"    {pair.style}"].append(drift)
    rows: list[tuple[str, ...]] = [("", "pairs", "free", "cost something", "mean cost")]
    for asked in ("asks the same", "asks something else"):
        rows.append((asked, "", "", "", ""))
        for (of, name), drifts in groups.items():
            if of == asked:
                rows.append((f"  {name}", *_figures(drifts)))
    return layout(rows)


def _figures(drifts: Sequence[float]) -> tuple[str, ...]:
    costs = [max(0.0, drift - CALIBRATED) / (1 - CALIBRATED) for drift in drifts]
    dear = sum(cost > 0 for cost in costs)
    return (
        str(len(costs)),
        f"{1 - dear / len(costs):.3f}",
        f"{dear / len(costs):.3f}",
        f"{sum(costs) / len(costs):.3f}",
    )
