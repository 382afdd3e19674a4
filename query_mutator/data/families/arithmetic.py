"""Sums, differences, products, quotients, percentages and sequences of small numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap
from random import Random

from query_mutator.data.families.numbers import spellings
from query_mutator.data.families.problem import Family, Problem, Topic, shuffled_forever

BANKNOTES = (10, 20, 50)
PERCENTAGES = (10, 20, 25, 30, 75)
SMALLEST_ANSWER = 3


def sums(random: Random) -> Iterator[Problem]:
    """`a` and `b` to be added."""
    while True:
        a, b = random.randint(3, 29), random.randint(3, 29)
        yield _problem(added(a, b), a + b, a=a, b=b)


def differences(random: Random) -> Iterator[Problem]:
    """`b` to be taken from `a`."""
    while True:
        a = random.randint(8, 39)
        b = random.randint(2, a - SMALLEST_ANSWER)
        yield _problem(added(b, a - b), a - b, a=a, b=b)


def changes(random: Random) -> Iterator[Problem]:
    """The change from a banknote `a` after paying `b`."""
    while True:
        a = random.choice(BANKNOTES)
        b = random.randint(2, a - SMALLEST_ANSWER)
        yield _problem(added(b, a - b), a - b, a=a, b=b)


def products(random: Random) -> Iterator[Problem]:
    """`a` to be multiplied by `b`."""
    while True:
        a, b = random.randint(3, 10), random.randint(3, 12)
        yield _problem(multiplied(a, b), a * b, a=a, b=b)


def doubles(random: Random) -> Iterator[Problem]:
    """`a` to be doubled."""
    while True:
        a = random.randint(6, 50)
        yield _problem(multiplied(2, a), 2 * a, a=a)


def quotients(random: Random) -> Iterator[Problem]:
    """`a` to be divided by `b`, without remainder."""
    while True:
        b, answer = random.randint(3, 10), random.randint(SMALLEST_ANSWER, 12)
        yield _problem(multiplied(b, answer), answer, a=answer * b, b=b)


def halves(random: Random) -> Iterator[Problem]:
    """`a` to be halved."""
    while True:
        answer = random.randint(6, 50)
        yield _problem(multiplied(2, answer), answer, a=2 * answer)


def percentages(random: Random) -> Iterator[Problem]:
    """`b` percent of `a`, a whole number."""
    while True:
        a, b = random.randrange(20, 201, 20), random.choice(PERCENTAGES)
        answer = a * b // 100
        divides = 100 % b == 0
        meaning = multiplied(100 // b, answer) if divides else f"percent:{b}%*{a}={answer}"
        yield _problem(meaning, answer, a=a, b=b)


def sequences(random: Random) -> Iterator[Problem]:
    """Four `terms` of equal steps, up or down, and the one that follows."""
    for step in shuffled_forever(random, range(2, 11)):
        start = random.randint(SMALLEST_ANSWER, 20)
        terms = [start + step * index for index in range(5)]
        *shown, answer = random.choice((terms, terms[::-1]))
        meaning = f"sequence:{','.join(map(str, terms))}"
        yield _problem(meaning, answer, terms=", ".join(map(str, shown)))


def added(a: int, b: int) -> str:
    """The meaning of a sum and of its two differences."""
    return multiplied(2, a) if a == b else f"sum:{min(a, b)}+{max(a, b)}={a + b}"


def multiplied(a: int, b: int) -> str:
    """The meaning of a product and of its two quotients."""
    return f"product:{min(a, b)}*{max(a, b)}={a * b}"


def _problem(meaning: str, answer: int, **values: int | str) -> Problem:
    filled = {name: str(value) for name, value in values.items()}
    return Problem(meaning, str(answer), spellings(answer), filled)


FAMILY = Family(
    prefix="ari",
    category="arithmetic",
    topics=(
        Topic(
            "sum", sums, 7,
            ("typos", "filler", "run-on", "telegraphic", "non-native", "alarming", "alarming"),
        ),
        Topic("difference", differences, 5, ("typos", "filler", "run-on", "alarming", "alarming")),
        Topic("change", changes, 2, ("telegraphic", "non-native")),
        Topic(
            "product", products, 6,
            ("typos", "filler", "run-on", "telegraphic", "non-native", "alarming"),
        ),
        Topic("double", doubles, 2, ("typos", "run-on")),
        Topic(
            "quotient", quotients, 6,
            ("typos", "filler", "run-on", "telegraphic", "non-native", "alarming"),
        ),
        Topic("half", halves, 2, ("filler", "non-native")),
        Topic("percent", percentages, 3, ("typos", "telegraphic", "non-native")),
        Topic("sequence", sequences, 3, ("filler", "run-on", "telegraphic")),
    ),
    asked=frozenset(
        {
            *starmap(added, (
                (5, 7), (9, 11), (3, 10), (4, 11), (6, 11), (2, 15), (7, 8), (20, 30), (10, 14),
                (4, 8), (3, 5), (6, 6), (4, 12), (4, 6), (6, 10),
            )),
            *starmap(multiplied, (
                (4, 6), (3, 6), (2, 5), (2, 30), (8, 9), (5, 7), (4, 10), (4, 25), (3, 11), (3, 7),
                (2, 150), (4, 20),
            )),
        }
    ),
)  # fmt: skip
