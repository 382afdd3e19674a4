"""Numbers that are offered with another one: "8 or 10", "8-10", "between 8 and 10"."""

from __future__ import annotations

import re
from collections.abc import Collection

from query_mutator.english.facts.amounts import YEAR, plain_number

OTHER = r"(?P<other>\d+(?:\.\d+)?)(?![\d%/:°]|[.,]\d)"
PERHAPS = r"(?:maybe |perhaps |possibly |even |about )?"
WORD = r"(?:\s*(?P<unit>[a-z]+))?"
CONDITION = r"(?!(?:\s+\w+)?\s+(?:if|when|counting|including|with)\b)"
OR_ANOTHER = re.compile(rf"{WORD}\s*,?\s+or\s+{PERHAPS}{OTHER}{CONDITION}(?:\s*(?P<its>[a-z]+))?")
ANOTHER_OR = re.compile(rf"(?<![\w./:-])(?P<other>\d+(?:\.\d+)?){WORD}\s*,?\s+or\s+{PERHAPS}$")
UP_TO = re.compile(rf"(?:-|\s?[–—]\s?|\s+to\s+){OTHER}(?![\w-]|\s*=)")
FROM = re.compile(r"(?<![\w./:-])(?P<other>\d+(?:\.\d+)?)(?:-|\s?[–—]\s?|\s+to\s+)$")
CHANGES = re.compile(r"\bfrom\s+(?:\d+(?:\.\d+)?\s+to\s+)?$")
"""What goes from 8 to 10 has been 8, and is 10."""
AND_ANOTHER = re.compile(rf"\s+and\s+{OTHER}")
BETWEEN = re.compile(r"\bbetween\s+$")
BETWEEN_ANOTHER_AND = re.compile(r"\bbetween\s+(?P<other>\d+(?:\.\d+)?)\s+and\s+$")
NOT_CHOSEN, IN_A_RANGE = "one of several", "within a range"


def undecided_number(low: str, number: str, end: int, known: Collection[str]) -> str:
    """Why the number of a text that ends at `end` is not the one decided on; "" where it is.

    `known` are numbers that a right answer may offer beside it.

    >>> undecided_number("8 or 10 legs", "8", 1, ()), undecided_number("8-10", "8", 1, ())
    ('one of several', 'within a range')
    >>> undecided_number("100 km or 62 miles", "100", 3, ())
    ''
    """
    ahead, behind = low[: end - len(number)], low[end:]
    if _another(OR_ANOTHER.match(behind), number, known):
        return NOT_CHOSEN
    unit = re.match(r"\s*([a-z]+)", behind)
    if _another(ANOTHER_OR.search(ahead), number, known, unit[1] if unit else None):
        return NOT_CHOSEN
    if BETWEEN.search(ahead) and _another(AND_ANOTHER.match(behind), number, known):
        return IN_A_RANGE
    if _another(BETWEEN_ANOTHER_AND.search(ahead), number, known):
        return IN_A_RANGE
    if CHANGES.search(ahead):
        return ""
    after, before = UP_TO.match(behind), FROM.search(ahead)
    ranges = (_another(after, number, known), _another(before, number, known))
    above, below = (float(other) if other else None for other in ranges)
    if all(YEAR.fullmatch(one) for one in (number, *filter(None, ranges))):
        return ""  # a time with its beginning and end
    value = float(number)
    rises = (above is not None and above > value) or (below is not None and below < value)
    return IN_A_RANGE if rises else ""


def _another(
    match: re.Match[str] | None, number: str, known: Collection[str], its: str | None = None
) -> str:
    """The number beside this one; "" where it is the same, a known one, or in another unit."""
    if match is None:
        return ""
    found = match.groupdict()
    other = plain_number(found["other"])
    unit, its = found.get("unit"), its or found.get("its")
    same = float(other) == float(number) or other in known
    return "" if same or (unit and its and unit != its) else other
