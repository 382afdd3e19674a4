"""Sums, differences, products, quotients, percentages and sequences of small numbers."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from data.families.numbers import spellings
from data.families.problem import Family, Problem, Topic, shuffled_forever

NAMES = (
    "Mia", "Ben", "Lena", "Omar", "Ella", "Noah", "Ruth", "Ivan", "Nora", "Theo", "Zoe", "Hugo",
)  # fmt: skip
THINGS = (
    "stamps", "marbles", "pencils", "shells", "cards", "buttons", "stickers", "beads",
    "postcards", "badges",
)  # fmt: skip
BANKNOTES = (10, 20, 50)
PERCENTAGES = (10, 20, 25, 30, 75)
SMALLEST_ANSWER = 3


def sums(random: Random) -> Iterator[Problem]:
    """`a` and `b` to be added."""
    for values in _words(random):
        a, b = random.randint(3, 29), random.randint(3, 29)
        yield _problem(f"sum:{min(a, b)}+{max(a, b)}", a + b, values, a=a, b=b)


def differences(random: Random) -> Iterator[Problem]:
    """`b` to be taken from `a`."""
    for values in _words(random):
        a = random.randint(8, 39)
        b = random.randint(2, a - SMALLEST_ANSWER)
        yield _problem(f"difference:{a}-{b}", a - b, values, a=a, b=b)


def changes(random: Random) -> Iterator[Problem]:
    """The change from a banknote `a` after paying `b`."""
    for values in _words(random):
        a = random.choice(BANKNOTES)
        b = random.randint(2, a - SMALLEST_ANSWER)
        yield _problem(f"difference:{a}-{b}", a - b, values, a=a, b=b)


def products(random: Random) -> Iterator[Problem]:
    """`a` to be multiplied by `b`."""
    for values in _words(random):
        a, b = random.randint(3, 10), random.randint(3, 12)
        yield _problem(f"product:{min(a, b)}*{max(a, b)}", a * b, values, a=a, b=b)


def doubles(random: Random) -> Iterator[Problem]:
    """`a` to be doubled."""
    for values in _words(random):
        a = random.randint(6, 50)
        yield _problem(f"product:2*{a}", 2 * a, values, a=a)


def quotients(random: Random) -> Iterator[Problem]:
    """`a` to be divided by `b`, without remainder."""
    for values in _words(random):
        b, answer = random.randint(3, 10), random.randint(SMALLEST_ANSWER, 12)
        yield _problem(f"quotient:{answer * b}/{b}", answer, values, a=answer * b, b=b)


def halves(random: Random) -> Iterator[Problem]:
    """`a` to be halved."""
    for values in _words(random):
        answer = random.randint(4, 50)
        yield _problem(f"quotient:{2 * answer}/2", answer, values, a=2 * answer)


def percentages(random: Random) -> Iterator[Problem]:
    """`b` percent of `a`, a whole number."""
    for values in _words(random):
        a, b = random.randrange(20, 201, 20), random.choice(PERCENTAGES)
        yield _problem(f"percent:{b}%*{a}", a * b // 100, values, a=a, b=b)


def sequences(random: Random) -> Iterator[Problem]:
    """Four `terms` of equal steps, up or down, and the one that follows."""
    for values in _words(random):
        start, step = random.randint(1, 20), random.randint(2, 10)
        terms = [start + step * index for index in range(5)]
        *shown, answer = random.choice((terms, terms[::-1]))
        yield _problem(
            f"sequence:{','.join(map(str, shown))}",
            answer,
            values | {"terms": ", ".join(map(str, shown))},
        )


def _words(random: Random) -> Iterator[dict[str, str]]:
    names, things = shuffled_forever(random, NAMES), shuffled_forever(random, THINGS)
    for name, thing in zip(names, things, strict=False):
        yield {"name": name, "thing": thing}


def _problem(meaning: str, answer: int, values: dict[str, str], **numbers: int) -> Problem:
    filled = values | {name: str(number) for name, number in numbers.items()}
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
            "sum:5+7", "sum:7+8", "difference:20-9", "difference:50-30", "difference:24-10",
            "difference:12-4", "difference:8-3", "product:4*6", "product:8*9", "product:4*10",
            "product:3*6", "product:3*11", "product:3*7", "quotient:18/3", "quotient:60/2",
            "quotient:35/5", "quotient:100/4",
        }
    ),
)  # fmt: skip
