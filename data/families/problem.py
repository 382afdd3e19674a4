"""What a family offers: an endless supply of problems for each of its topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Problem:
    """Something to ask, before it is put into words."""

    meaning: str
    """The same for all ways to ask it, whatever the order of its numbers."""
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
