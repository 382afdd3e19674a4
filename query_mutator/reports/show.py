"""A run at a glance: its learning curve, on the terminal and as a picture, and best rewrites."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from pathlib import Path

import numpy as np

from query_mutator.base.pictures import figure
from query_mutator.base.terminal import printable
from query_mutator.environment.transition import Transition
from query_mutator.runs.transitions import read_transitions, returns_by_update

CURVE_PICTURE = "learning_curve.png"
EXAMPLES = 2
EXAMPLE_LINES = 4
CHART_HEIGHT = 13
MAX_WIDTH = 100


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The command line of `show`."""
    parser.add_argument("run_dir", metavar="RUN", help="directory of a run")


def run(args: argparse.Namespace) -> int:
    """Shows the run that the flags name."""
    show_run(args.run_dir)
    return 0


def show_run(run: str | Path) -> None:
    """Prints the learning curve and the two best before/after examples; writes the picture."""
    transitions = list(read_transitions(run))
    steps, returns = returns_by_update(transitions)
    shown = [(end, values) for end, values in zip(steps, returns, strict=True) if values]
    if not shown:
        print("no episode has ended yet: nothing to show")
        return
    ends = [end for end, _ in shown]
    curves = [values for _, values in shown]
    print()
    print(terminal_curve(ends, [float(np.mean(values)) for values in curves]))
    print(_in_words(curves))
    picture = draw_curve(ends, curves, Path(run) / CURVE_PICTURE)
    print(printable(f"picture: {picture}"))
    for number, example in enumerate(best_examples(transitions), 1):
        print(f"\n{_example(number, example)}")
    print()


def terminal_curve(steps: list[int], means: list[float]) -> str:
    """A line chart of the mean return, for the terminal."""
    import plotext

    width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(width, CHART_HEIGHT)
    plotext.title("mean return by environment steps (0 = the question left unchanged)")
    plotext.plot(steps, [0.0] * len(steps), marker=".")
    plotext.plot(steps, means, marker="braille")
    low, high = min(0.0, *means), max(0.0, *means)
    near = (high - low) / 8
    ticks = [0.0] + [tick for tick in (low, low / 2, high / 2, high) if abs(tick) > near]
    plotext.yticks(ticks, [f"{tick:+.2f}" if tick else "0" for tick in ticks])
    chosen = sorted({steps[round(i)] for i in np.linspace(0, len(steps) - 1, 6)})
    plotext.xticks(chosen, [str(step) for step in chosen])
    chart: str = plotext.uncolorize(plotext.build())
    return "\n".join(line.rstrip() for line in chart.rstrip().split("\n"))


def draw_curve(steps: list[int], returns: list[list[float]], path: Path) -> Path:
    """The learning curve as a PNG: the mean return of each update with its standard error."""
    means = np.array([np.mean(values) for values in returns])
    errors = np.array([np.std(values) / np.sqrt(len(values)) for values in returns])
    with figure(path, (8, 4)) as (_, [axes]):
        axes.axhline(0, color="0.5", linewidth=1, linestyle="--")
        axes.annotate(
            "question left unchanged", (steps[-1], 0), (0, 3), textcoords="offset points",
            ha="right", va="bottom", color="0.4", fontsize=9,
        )  # fmt: skip
        axes.fill_between(steps, means - errors, means + errors, alpha=0.2, color="tab:blue", lw=0)
        axes.plot(steps, means, color="tab:blue", marker="o", markersize=4)
        axes.set_xlabel("environment steps")
        axes.set_ylabel("mean return ± standard error")
        axes.set_title("How much better the rewritten question is answered (training questions)")
        axes.grid(alpha=0.25)
    return path


def best_examples(transitions: list[Transition]) -> list[Transition]:
    """The first rewrites with the greatest rewards, of different questions."""
    valid = [
        step
        for step in transitions
        if not step.failed and step.reward > 0 and step.query == step.original_query
    ]
    best: dict[str, Transition] = {}
    for step in sorted(valid, key=lambda step: -step.reward):
        best.setdefault(step.question_id, step)
        if len(best) == EXAMPLES:
            break
    return list(best.values())


def _in_words(curves: list[list[float]]) -> str:
    window = max(1, len(curves) // 10)
    first = np.mean([np.mean(values) for values in curves[:window]])
    last = np.mean([np.mean(values) for values in curves[-window:]])
    return (
        f"mean return: {first:+.3f} at first, {last:+.3f} at last "
        "(on the training questions; other questions may differ)"
    )


def _without_middle(text: str, most: int) -> str:
    """The text, or its two ends: an operator adds its words at either."""
    half = most // 2 - 12  # lines are broken between words, and so are not quite full
    return text if len(text) <= 2 * half else f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


def _example(number: int, step: Transition) -> str:
    width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
    rows = [
        ("asked", step.query),
        ("answer", step.previous_answer),
        ("rewritten", step.rewritten_query),
        ("answer", step.answer),
    ]
    lines = [
        f"best example {number}: {printable(step.operator)} raised the score "
        f"from {step.previous_score:.2f} to {step.score or 0:.2f}"
    ]
    for label, text in rows:
        lines += textwrap.wrap(
            _without_middle(printable(text), EXAMPLE_LINES * (width - 12)) or "(nothing)",
            width,
            initial_indent=f"  {label:<10}",
            subsequent_indent=" " * 12,
            max_lines=EXAMPLE_LINES,
            placeholder=" …",
        )
    return "\n".join(lines)
