"""Weekdays, months, dates and leap years, by the calendar of the standard library."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

from query_mutator.data.families.numbers import ordinals, spellings, year_spellings
from query_mutator.data.families.problem import Family, Problem, Topic, shuffled_forever

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
COMMON_WORDS = frozenset({"May"})
"""Names that a wrong answer holds by accident."""
SHORT = {"May": (), "September": ("Sep", "Sept")}
"""Abbreviations other than the first three letters."""
COMMON_YEAR = 2023
YEARS = range(1991, 2032)


def days_in_month(random: Random) -> Iterator[Problem]:
    """A `month` other than February, whose days are asked for."""
    for month in shuffled_forever(random, MONTHS):
        if month != "February":
            count = calendar.monthrange(COMMON_YEAR, MONTHS.index(month) + 1)[1]
            said = (*spellings(count), *ordinals(count))
            yield Problem(f"days-in-month:{month}", str(count), said, {"month": month})


def weekdays_after(random: Random) -> Iterator[Problem]:
    """The weekday `n` days after `day`."""
    for day in shuffled_forever(random, DAYS):
        n = random.choice((2, 3, 4, 5, 6, 8, 10))
        answer = DAYS[(DAYS.index(day) + n) % 7]
        yield _named(f"weekday:{day}+{n % 7}={answer}", answer, day=day, n=str(n))


def weekdays_before(random: Random) -> Iterator[Problem]:
    """The weekday `n` days before `day`."""
    for day in shuffled_forever(random, DAYS):
        n = random.choice((2, 3, 4, 5, 6, 8))
        answer = DAYS[(DAYS.index(day) - n) % 7]
        yield _named(f"weekday:{answer}+{n % 7}={day}", answer, day=day, n=str(n))


def months_around(random: Random) -> Iterator[Problem]:
    """The month that lies `span` or `gap` ("right after", "one month after") a `month`."""
    for month in shuffled_forever(random, MONTHS):
        n, side = random.randint(1, 5), random.choice(("before", "after"))
        answer = MONTHS[(MONTHS.index(month) + (n if side == "after" else -n)) % 12]
        first, last = (month, answer) if side == "after" else (answer, month)
        if answer not in COMMON_WORDS:
            gap = f"one month {side}" if n == 1 else f"{n} months {side}"
            values = {"month": month, "gap": gap, "span": f"right {side}" if n == 1 else gap}
            yield _named(f"month:{first}+{n}={last}", answer, **values)


def months_between(random: Random) -> Iterator[Problem]:
    """How many months lie between `start` and `end`."""
    for start in shuffled_forever(random, MONTHS):
        n = random.randint(3, 8)
        end = MONTHS[(MONTHS.index(start) + n) % 12]
        yield _counted(f"month:{start}+{n}={end}", n, start=start, end=end)


def days_between(random: Random) -> Iterator[Problem]:
    """How many days lie between `start` and `end`, never with the end of a February."""
    for start, n in _spans(random):
        end = start + timedelta(days=n)
        dates = {"start": _said(start), "end": _said(end)}
        yield _counted(f"date:{dates['start']}+{n}={dates['end']}", n, **dates)


def dates_after(random: Random) -> Iterator[Problem]:
    """The date `n` days after `start`, in the next month."""
    for start, n in _spans(random):
        end = start + timedelta(days=n)
        if end.month != start.month and n <= 10:
            meaning = f"date:{_said(start)}+{n}={_said(end)}"
            values = {"start": _said(start), "n": str(n)}
            yield Problem(meaning, _said(end), _date_spellings(end), values)


def leap_years(random: Random) -> Iterator[Problem]:
    """The leap year next to a `year` that is none, on one `side` of it."""
    for year in shuffled_forever(random, [year for year in YEARS if not calendar.isleap(year)]):
        side, step = random.choice((("after", 1), ("before", -1)))
        answer = next(y for y in range(year, year + 9 * step, step) if calendar.isleap(y))
        first = year // 4 * 4
        values = {"year": str(year), "side": side}
        yield Problem(f"leap:{first}-{first + 4}", str(answer), year_spellings(answer), values)


def days_in_year(random: Random) -> Iterator[Problem]:
    """A `year` whose days are asked for, as often a leap year as not."""
    for leap in shuffled_forever(random, (True, False)):
        year = random.choice([year for year in YEARS if calendar.isleap(year) == leap])
        yield _counted(f"days-in-year:{year}", 366 if leap else 365, year=str(year))


def _spans(random: Random) -> Iterator[tuple[date, int]]:
    for month in shuffled_forever(random, [1, *range(3, 12)]):
        yield date(COMMON_YEAR, month, random.randint(2, 28)), random.randint(3, 20)


def _said(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.day}"


def _date_spellings(day: date) -> tuple[str, ...]:
    month = MONTHS[day.month - 1]
    ordinal, *named = ordinals(day.day)
    full = [f"{month} {day.day}", f"{month} the {day.day}"]
    full += [f"{month} {the}{name}" for name in named for the in ("", "the ")]
    full += [f"{d} {of}{month}" for d in (day.day, ordinal, *named) for of in ("", "of ")]
    for short in SHORT.get(month, (month[:3],)):
        full += [f"{short} {day.day}", f"{short}. {day.day}", f"{day.day} {short}"]
        full += [f"{ordinal} {short}", f"{ordinal} of {short}"]
    return tuple(full)


def _counted(meaning: str, answer: int, **values: str) -> Problem:
    return Problem(meaning, str(answer), spellings(answer), values)


def _named(meaning: str, answer: str, **values: str) -> Problem:
    return Problem(meaning, answer, (answer,), values)


FAMILY = Family(
    prefix="dat",
    category="units-and-dates",
    topics=(
        Topic("days_in_month", days_in_month, 2, ("typos", "run-on")),
        Topic("weekday_after", weekdays_after, 3, ("filler", "telegraphic", "alarming")),
        Topic("weekday_before", weekdays_before, 2, ("non-native", "run-on")),
        Topic("month", months_around, 4, ("typos", "filler", "telegraphic", "non-native")),
        Topic("months_between", months_between, 2, ("telegraphic", "alarming")),
        Topic("days_between", days_between, 2, ("run-on", "alarming")),
        Topic("date_after", dates_after, 1, ("filler",)),
        Topic("leap_year", leap_years, 1, ("typos",)),
        Topic("days_in_year", days_in_year, 1, ("non-native",)),
    ),
    asked=frozenset(
        {
            "days-in-month:April",
            "days-in-year:2000",
            "weekday:Tuesday+1=Wednesday",
            "weekday:Wednesday+1=Thursday",
            "weekday:Friday+3=Monday",
        }
    ),
)
