"""Bars and shares of plain text."""

from __future__ import annotations

EIGHTHS = " ▏▎▍▌▋▊▉█"
BAR_WIDTH = 40


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """A bar that fills so much of the width, to an eighth of a character.

    >>> bar(0.5, 4), bar(0.30, 4), bar(0.001, 4), bar(0, 4)
    ('██', '█▎', '▏', '')
    """
    eighths = round(share * width * 8)
    if share > 0:
        eighths = max(1, eighths)  # what is there is seen
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def percent(share: float) -> str:
    """A share in words; no rounding makes it look whole.

    >>> percent(0.7123), percent(0.99996), percent(1)
    ('71.2 %', '99.99 %', '100 %')
    """
    if share == 1:
        return "100 %"
    if share > 0.999:
        return f"{int(share * 10000) / 100:.2f} %"
    return f"{share * 100:.1f} %"
