"""Shows results: a table, a bar chart, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from query_mutator.base.flags import AUTO
from query_mutator.bench.measure import Result
from query_mutator.bench.strategies import OURS


def table(results: Sequence[Result]) -> str:
    """The results as text; speed-ups are against the first of them."""
    head = f"{'design':<24}{'batch':>6}{'time s':>9}{'calls/s':>9}{'speed-up':>9}"
    head += f"{'slots':>7}{'median s':>9}{'p95 s':>8}{'at once':>8}{'failed':>7}"
    lines = [head, "-" * len(head)]
    for result in results:
        used = "–" if result.slot_utilisation is None else f"{result.slot_utilisation:.2f}"
        lines.append(
            f"{result.strategy:<24}{result.batch_size:>6}{result.seconds:>9.1f}"
            f"{result.calls_per_second:>9.1f}{speed_up(results, result):>9.2f}{used:>7}"
            f"{_seconds(result.median_latency_s):>9}{_seconds(result.p95_latency_s):>8}"
            f"{result.max_in_flight or '–':>8}{result.failed:>7}"
        )
    return "\n".join(lines)


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
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    labels = [f"{result.strategy} ({result.batch_size})" for result in results]
    rates = [result.calls_per_second for result in results]
    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(results) + 1.2), layout="constrained")
    colours = ["tab:blue" if result.strategy.startswith(OURS) else "0.7" for result in results]
    bars = axes.barh(labels, rates, color=colours)
    texts = [
        f"{rate:.1f}/s, {speed_up(results, r):.1f}×" for rate, r in zip(rates, results, strict=True)
    ]
    axes.bar_label(bars, texts, padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, max(rates) * 1.2)
    axes.set_xlabel("calls per second")
    axes.set_title("The same calls, by who waits for whom (batch size in brackets)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
