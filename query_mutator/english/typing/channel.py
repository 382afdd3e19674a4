"""How easily one word is typed where another is meant: slips of fingers, and spelling by ear."""

from __future__ import annotations

import functools
import math
import tomllib
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from query_mutator.english.words import words_in

TABLES_FILE = Path(__file__).with_name("slips.toml")
MOST = 14.0
"""Costs above this are all the same: nobody types that for the other."""
FARTHEST = 3
"""Letters by which the two may be out of step."""


@functools.cache
def tables() -> dict[str, dict[str, object]]:
    """What people do to words, and what it costs."""
    return tomllib.loads(TABLES_FILE.read_text(encoding="utf-8"))


@functools.cache
def slip_costs() -> dict[str, float]:
    """The cost of each kind of slip, in units of log probability."""
    return {name: float(str(cost)) for name, cost in tables()["costs"].items()}


class Costs(NamedTuple):
    """What it costs to read a word as another, beside the slips in its letters."""

    habit: float
    space: float
    letter: float
    unknown: float
    real: float


@functools.lru_cache(maxsize=256)
def costs_of_slips(errors: float) -> Costs:
    """The costs in a text that is clean, at 0, up to one that is full of errors, at 1."""
    costs = slip_costs()
    unknown, real = (
        costs[name] + errors * (costs[f"{name}_among_errors"] - costs[name])
        for name in ("unknown", "real")
    )
    return Costs(costs["habit"], costs["space"], costs["letter"], unknown, real)


@functools.lru_cache(maxsize=65536)
def cost_of_typing(typed: str, meant: str) -> float:
    """The negative log probability, up to a constant, of typing one word for another.

    >>> cost_of_typing("fone", "phone") < cost_of_typing("fone", "bone")
    True
    >>> cost_of_typing("teh", "the") < cost_of_typing("teh", "ten") < cost_of_typing("teh", "cat")
    True
    """
    if typed == meant:
        return 0.0
    slips = slip_costs()
    rows = [[math.inf] * (len(meant) + 1) for _ in range(len(typed) + 1)]
    rows[0][0] = 0.0
    for place in range(len(typed) + 1):
        row = rows[place]
        starts = _spellings_at(typed, place)
        for other in range(max(0, place - FARTHEST), min(len(meant), place + FARTHEST) + 1):
            cost = row[other]
            if cost >= MOST:
                continue
            for length, meant_letters, spelling_cost in starts:
                if meant.startswith(meant_letters, other):
                    _relax(rows, place + length, other + len(meant_letters), cost + spelling_cost)
            first = slips["first"] if not place or not other else 0.0
            for length, other_length, name in _slips(typed, place, meant, other):
                extra = 0.0 if name == "same" else first + slips[name]
                _relax(rows, place + length, other + other_length, cost + extra)
    return min(MOST, rows[-1][-1])


@functools.cache
def habits() -> dict[str, tuple[str, ...]]:
    """What words stand for that people type on purpose or always get wrong."""
    found: dict[str, tuple[str, ...]] = {}
    for meant, typed in tables()["habits"].items():
        for word in str(typed).split():
            found[word] = (*found.get(word, ()), meant)
    return found


@functools.cache
def never_meant() -> frozenset[str]:
    """Words that are not worth the risk of reading them where something else was meant."""
    return words_in(str(tables()["never"]["words"]))


def _relax(rows: list[list[float]], place: int, other: int, cost: float) -> None:
    if cost < rows[place][other]:
        rows[place][other] = cost


def _slips(typed: str, place: int, meant: str, other: int) -> list[tuple[int, int, str]]:
    """Letters of each word that a slip takes, and its kind."""
    letter, wanted = typed[place : place + 1], meant[other : other + 1]
    found: list[tuple[int, int, str]] = []
    if letter and wanted:
        if letter == wanted:
            found.append((1, 1, "same"))
        else:
            found.append((1, 1, _kind_of_change(letter, wanted)))
            if typed[place + 1 : place + 2] == wanted and letter == meant[other + 1 : other + 2]:
                found.append((2, 2, "swap"))
            three = meant[other : other + 3]
            if typed[place : place + 3] in (three[1:] + three[:1], three[-1:] + three[:-1]):
                found.append((len(three), len(three), "far_swap"))
    if letter:
        doubled = place and typed[place - 1] == letter
        found.append((1, 0, "doubled" if doubled else "added"))
    if wanted:
        single = other and meant[other - 1] == wanted
        vowel = "dropped_vowel" if wanted in "aeiou" else "dropped"
        found.append((0, 1, "single" if single else vowel))
    return found


@functools.cache
def _neighbours() -> dict[str, str]:
    return {key: str(beside) for key, beside in tables()["neighbours"].items()}


def _kind_of_change(letter: str, wanted: str) -> str:
    if letter in "aeiou" and wanted in "aeiou":
        return "vowel"
    return "neighbour" if letter in _neighbours().get(wanted, "") else "other"


@functools.cache
def _spellings() -> dict[str, list[tuple[str, float]]]:
    """For letters that are typed: what is meant by them, as it sounds alike, and the cost."""
    found: dict[str, dict[str, float]] = {}
    groups = tables()["sounds"]["alike"]
    assert isinstance(groups, list)
    for group in groups:
        for typed, meant in permutations(group.split(), 2):
            found.setdefault(typed, {})[meant] = slip_costs()["sound"]
    return {typed: list(meant.items()) for typed, meant in found.items()}


def _spellings_at(typed: str, place: int) -> list[tuple[int, str, float]]:
    spellings = _spellings()
    return [
        (length, meant, cost)
        for length in range(1, min(5, len(typed) - place) + 1)
        for meant, cost in spellings.get(typed[place : place + length], ())
    ]
