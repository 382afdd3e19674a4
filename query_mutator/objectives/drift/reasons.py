"""What changed between a question and its rewrite, in words."""

from __future__ import annotations

from query_mutator.objectives.drift.asked import HARD, SAID, group_of
from query_mutator.objectives.drift.pair import Compared

MOST_REASONS = 2
MOST_WORDS = 4


def reason(found: Compared, drifted: bool) -> str:
    """The most telling changes; where all is well, that the same is asked.

    >>> reason(Compared(new_numbers=[8.0], lost_numbers=[7.0]), drifted=True)
    'another number: 7 → 8'
    """
    if not drifted:
        return "asks the same"
    return "; ".join(_changes(found)[:MOST_REASONS]) or "asks something else"


def _changes(found: Compared) -> list[str]:
    numbers, said = found.numbers, []
    if found.new_numbers:
        old = ", ".join(map(_number, found.lost_numbers[:MOST_WORDS])) or "none"
        said.append(
            f"another number: {old} → {', '.join(map(_number, found.new_numbers[:MOST_WORDS]))}"
        )
    if numbers.get("from aside, opening lost") and found.aside:
        said.append(f"'{found.aside[0]}' is asked about, not '{found.opening_lost[0]}'")
    before, after = found.kinds
    other_group = group_of(before) != group_of(after) and {group_of(before), group_of(after)} & HARD
    if other_group or any(numbers.get(name) for name in ("who not asked", "means not asked")):
        said.append(f"asks for {SAID[after]}, not {SAID[before]}")
    if numbers.get("turned round") or numbers.get("turned round by another"):
        said.append("two things changed places")
    said += [f"the opposite: '{old}' → '{new}'" for old, new in found.opposites]
    if numbers.get("negation put in"):
        said.append("a negation put in")
    exchanged = dict.fromkeys(found.exchanged)
    said += [f"'{new}' in the place of '{old}'" for old, new in exchanged if old and new]
    if found.lost_numbers and not found.new_numbers:
        said.append(f"left out: {', '.join(map(_number, found.lost_numbers[:MOST_WORDS]))}")
    if numbers.get("negation lost"):
        said.append("a negation left out")
    if found.new:
        said.append(f"other words: {', '.join(found.new[:MOST_WORDS])}")
    if found.lost:
        said.append(f"left out: {', '.join(found.lost[:MOST_WORDS])}")
    return said


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
