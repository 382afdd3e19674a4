"""Writes well-known names with their capital letters."""

from __future__ import annotations

import functools
import re
from pathlib import Path

NAMES_FILE = Path(__file__).with_name("names.txt")


def capitalise_names(question: str) -> str:
    """The question with places, peoples, days, months and the like as they are written.

    >>> capitalise_names("who painted the sistine chapel in the vatican in rome on a monday")
    'who painted the sistine chapel in the Vatican in Rome on a Monday'
    >>> capitalise_names("does a usb stick work on linux in the united states")
    'does a USB stick work on Linux in the United States'
    """
    written, pattern = _names()
    # The pattern also matches letters like a dotless i, whose name is then another one.
    return pattern.sub(lambda match: written.get(match[0].casefold(), match[0]), question)


@functools.cache
def _names() -> tuple[dict[str, str], re.Pattern[str]]:
    lines = NAMES_FILE.read_text(encoding="utf-8").splitlines()
    names = [name.strip() for line in lines if line[:1] != "#" for name in line.split(",")]
    written = {name.casefold(): name for name in names if name}
    longest_first = sorted(written, key=len, reverse=True)
    return written, re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE)
