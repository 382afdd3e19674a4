"""Shows results: a table, a bar chart, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from query_mutator.base.flags import AUTO
from query_mutator.base.pictures import figure
from query_mutator.base.tables import layout
from query_mutator.bench.measure import Result
from query_mutator.bench.strategies import OURS

HEADINGS = (
    "design", "batch", "time s", "calls/s", "speed-up", "slots", "median s", "p95 s", "at once",
    "failed",
)  # fmt: skip


def table(results: Sequence[Result]) -> str:
    """The results as text; speed-ups are against the first of them."""
    rows = [HEADINGS]
    for result in results:
        used = "–" if result.slot_utilisation is None else f"{result.slot_utilisation:.2f}"
        measured = f"{result.seconds:.1f}", f"{result.calls_per_second:.1f}"
        latency = _seconds(result.median_latency_s), _seconds(result.p95_latency_s)
        ends = str(result.max_in_flight or "–"), str(result.failed)
        speed = f"{speed_up(results, result):.2f}"
        rows.append(
            (result.strategy, str(result.batch_size), *measured, speed, used, *latency, *ends)
        )
    return layout(rows, rule=True)


def recommendation(results: Sequence[Result]) -> str:
    """What to set on a real server: the smallest batch size within 5 % of the best of ours."""
    ours = [r for r in results if r.strategy == OURS]
    sizes = {int(r.batch_size): r.calls_per_second for r in ours if r.batch_size != AUTO}
    if not sizes:
        return ""
    size = min(size for size, rate in sizes.items() if rate >= 0.95 * max(sizes.values()))
    line = f"recommended: --batch-size {size}; for Ollama set OLLAMA_NUM_PARALLEL={size}"
    if len(sizes) == 1:
        line += "\n(the only size measured: --batch-size 1 2 4 8 16 compares several)"
    return line


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def speed_up(results: Sequence[Result], result: Result) -> float:
    """How many times the calls per second of the first result."""
    return result.calls_per_second / results[0].calls_per_second


def write_files(results: Sequence[Result], setting: dict[str, Any], folder: Path) -> None:
    """batching.json and batching.png in `folder`, which is there."""
    content = {
        "setting": setting,
        "results": [{**asdict(r), "speed_up": speed_up(results, r)} for r in results],
    }
    (folder / "batching.json").write_text(json.dumps(content, indent=2) + "\n")
    _draw(results, folder / "batching.png")


def _draw(results: Sequence[Result], path: Path) -> None:
    labels = [f"{result.strategy} ({result.batch_size})" for result in results]
    rates = [result.calls_per_second for result in results]
    with figure(path, (8, 0.5 * len(results) + 1.2)) as (_, [axes]):
        colours = ["tab:blue" if result.strategy.startswith(OURS) else "0.7" for result in results]
        bars = axes.barh(labels, rates, color=colours)
        texts = [f"{r.calls_per_second:.1f}/s, {speed_up(results, r):.1f}×" for r in results]
        axes.bar_label(bars, texts, padding=3, fontsize=9)
        axes.invert_yaxis()
        axes.set_xlim(0, max(rates) * 1.2)
        axes.set_xlabel("calls per second")
        axes.set_title("The same calls, by who waits for whom (batch size in brackets)")
