"""Pictures drawn by matplotlib, without a screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DPI = 150


@contextmanager
def figure(
    path: str | Path, size: tuple[float, float], *, panels: int = 1
) -> Iterator[tuple[Any, Sequence[Any]]]:
    """A figure and its axes, side by side, to draw on; at the end it is written as PNG.

    A dollar sign in a text is one: texts of others are shown, not set as formulas.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"text.parse_math": False, "font.size": 10}):
        drawn, all_axes = pyplot.subplots(
            1, panels, figsize=size, squeeze=False, layout="constrained"
        )
        try:
            for axes in all_axes[0]:
                axes.spines[["top", "right"]].set_visible(False)
            yield drawn, list(all_axes[0])
            drawn.savefig(path, dpi=DPI, format="png")
        finally:
            pyplot.close(drawn)
