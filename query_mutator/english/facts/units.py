"""Units of measurement: their names, their signs, and which of them measure the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from query_mutator.english.words import words_in

UNITS = tuple(
    words_in(units)
    for units in (
        "second minute hour day week month year decade century",
        "millimeter centimeter meter kilometer inch foot yard mile",
        "milligram gram kilogram ounce pound ton",
        "milliliter liter cup pint gallon",
        "cent dime quarter dollar pence penny euro",
    )
)
SIGNS = {
    "km": "kilometer", "cm": "centimeter", "mm": "millimeter", "mi": "mile", "ft": "foot",
    "feet": "foot", "yd": "yard", "kg": "kilogram", "g": "gram", "mg": "milligram", "lb": "pound",
    "oz": "ounce", "ml": "milliliter", "hr": "hour", "min": "minute", "sec": "second",
}  # fmt: skip
"""Those that stand for one unit only: m is a metre, a minute or a million."""


def unit_of(word: str) -> str:
    """A unit as `UNITS` has it; other words as they are.

    >>> unit_of("kilometres"), unit_of("km"), unit_of("legs")
    ('kilometer', 'kilometer', 'leg')
    """
    word = word.replace("metre", "meter").replace("litre", "liter").removesuffix("s")
    word = word.removesuffix("e") if word == "inche" else word
    return SIGNS.get(word, word)


def is_another_unit(word: str, meant: Iterable[str]) -> bool:
    """Whether a word is a unit that is not among those meant, and measures what one of them does.

    >>> is_another_unit("miles", ["km"]), is_another_unit("km", ["kilometres"])
    (True, False)
    """
    unit, asked = unit_of(word), set(map(unit_of, meant))
    return any(unit in family and asked & family for family in UNITS) and unit not in asked


@lru_cache(maxsize=256)
def written_forms(word: str) -> str:
    """A pattern for all names and signs of a unit; "" for what is none."""
    unit = unit_of(word)
    if not any(unit in family for family in UNITS):
        return ""
    names = [unit, *(sign for sign, name in SIGNS.items() if name == unit)]
    british = [re.sub("(met|lit)er$", r"\1re", unit)]
    return f"(?:{'|'.join(dict.fromkeys(names + british))})(?:e?s)?"
