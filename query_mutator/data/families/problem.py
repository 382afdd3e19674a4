"""What a family offers: an endless supply of problems for each of its topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Problem:
    """Something to ask, before it is put into words."""

    meaning: str
    """The same for all ways to ask it, whichever of its numbers is asked for."""
    answer: str
    """As the reference says it."""
    spellings: tuple[str, ...]
    """All ways in which an answer may say it."""
    values: dict[str, str]
    """What the phrasings fill in."""


@dataclass(frozen=True)
class Topic:
    """Problems that share their phrasings, and how many rows of which kind they become."""

    phrasings: str
    """The table in `phrasings.toml`."""
    problems: Callable[[Random], Iterator[Problem]]
    clear: int
    messy: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Topics that share a category and a prefix of ids."""

    prefix: str
    category: str
    topics: tuple[Topic, ...]
    asked: frozenset[str]
    """Meanings that hand-written questions ask already."""


def shuffled_forever(random: Random, items: Sequence[Item]) -> Iterator[Item]:
    """All items in random order, again and again: none twice before each was seen once."""
    while True:
        yield from random.sample(items, len(items))


class Deck(Generic[Item]):
    """Deals items in random order: none twice before each that fits was dealt once."""

    def __init__(self, random: Random, items: Sequence[Item]) -> None:
        self._random = random
        self._items = items
        self._left: list[Item] = []

    def deal(self, fits: Callable[[Item], bool] = lambda _: True) -> Item:
        """The next item that fits; the others stay for later."""
        fitting = [item for item in self._left if fits(item)]
        if not fitting:
            self._left += self._random.sample(self._items, len(self._items))
            return self.deal(fits)
        self._left.remove(fitting[0])
        return fitting[0]
