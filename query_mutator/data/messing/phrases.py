"""Says things from word lists: none twice before each was said once."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from query_mutator.data.families.problem import Deck

HERE = Path(__file__).parent
GAP = re.compile(r"\{(\w+)\}")


class Phrases:
    """Deals phrases from the lists, and fills their gaps from other lists or from what is given."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._decks: dict[tuple[str, str], Deck[str]] = {}

    def has(self, table: str, name: str) -> bool:
        """Whether there is such a list."""
        return name in lists(table)

    def say(self, table: str, name: str, **values: str) -> str:
        """A phrase of the list, its gaps filled."""
        return self.fill(self._deal(table, name, set(values)), table, **values)

    def fill(self, phrase: str, table: str, **values: str) -> str:
        """The phrase with its gaps filled by the values, or by phrases of the table's lists."""

        def put(match: re.Match[str]) -> str:
            name = match[1]
            return values[name] if name in values else self.say(table, name, **values)

        return GAP.sub(put, phrase)

    def chance(self, share: float) -> bool:
        """True in so many cases."""
        return self.random.random() < share

    def _deal(self, table: str, name: str, given: set[str]) -> str:
        key = table, name
        if key not in self._decks:
            self._decks[key] = Deck(self.random, lists(table)[name])
        known = lists(table)
        return self._decks[key].deal(
            lambda phrase: all(gap in given or gap in known for gap in GAP.findall(phrase))
        )


@cache
def lists(table: str) -> dict[str, Any]:
    """The lists of one file, by name."""
    found: dict[str, Any] = tomllib.loads((HERE / f"{table}.toml").read_text(encoding="utf-8"))
    return found


@cache
def words(name: str) -> frozenset[str]:
    """Words that are treated alike, from `words.toml`."""
    return frozenset(lists("words")[name])
