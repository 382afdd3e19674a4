"""How much is tried: little whenever somebody waits, much at night (`make nightly`)."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

NIGHTLY = bool(os.environ.get("NIGHTLY"))
MOST_EXAMPLES = 50
MORE_AT_NIGHT = 10

# What fails once fails again, here and on any machine, however busy it is.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=MOST_EXAMPLES, database=None
)
# Every night draws others; what fails is printed as something to put above the test.
settings.register_profile(
    "nightly", deadline=None, max_examples=100 * MORE_AT_NIGHT, database=None, print_blob=True
)
settings.load_profile("nightly" if NIGHTLY else "repeatable")


def examples(many: int, **options: Any) -> settings:
    """So many random examples, `MOST_EXAMPLES` at most; at night `MORE_AT_NIGHT` times as many."""
    most = many * MORE_AT_NIGHT if NIGHTLY else min(many, MOST_EXAMPLES)
    return settings(max_examples=most, **options)


def seeds(few: int, *, at_night: int) -> range:
    """Seeds from 1 on."""
    return range(1, 1 + (at_night if NIGHTLY else few))
