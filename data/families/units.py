"""Conversions between units, from the larger to the smaller and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from data.families.numbers import spellings
from data.families.problem import Family, Problem, Topic, shuffled_forever

SMALLEST_ANSWER = 3
HARD_FACTORS = (16, 24, 60)
HALF = Fraction(1, 2)
AMOUNTS = (HALF, Fraction(1), 3 * HALF, Fraction(2), 5 * HALF, *map(Fraction, range(3, 9)))


@dataclass(frozen=True)
class Conversion:
    """One `large` is `factor` of `smalls`."""

    dimension: str
    large: str
    larges: str
    factor: int
    smalls: str

    @property
    def largest(self) -> int:
        """The largest number of `large` that is easy to convert in the head."""
        return 5 if self.factor in HARD_FACTORS else 8

    def amount(self, number: Fraction) -> str:
        """So many of the larger unit, as people say it."""
        if number == HALF:
            return f"half {'an' if self.large == 'hour' else 'a'} {self.large}"
        if number == 1:
            return f"one {self.large}"
        if number.denominator == 2:
            return f"{'one' if number < 2 else 'two'} and a half {self.larges}"
        return f"{number} {self.larges}"


CONVERSIONS = (
    Conversion("length", "kilometer", "kilometers", 1000, "meters"),
    Conversion("length", "meter", "meters", 100, "centimeters"),
    Conversion("length", "centimeter", "centimeters", 10, "millimeters"),
    Conversion("length", "foot", "feet", 12, "inches"),
    Conversion("length", "yard", "yards", 3, "feet"),
    Conversion("weight", "kilogram", "kilograms", 1000, "grams"),
    Conversion("weight", "metric ton", "metric tons", 1000, "kilograms"),
    Conversion("weight", "pound", "pounds", 16, "ounces"),
    Conversion("volume", "liter", "liters", 1000, "milliliters"),
    Conversion("volume", "gallon", "gallons", 4, "quarts"),
    Conversion("time", "minute", "minutes", 60, "seconds"),
    Conversion("time", "hour", "hours", 60, "minutes"),
    Conversion("time", "day", "days", 24, "hours"),
    Conversion("time", "week", "weeks", 7, "days"),
    Conversion("years", "year", "years", 12, "months"),
    Conversion("years", "decade", "decades", 10, "years"),
    Conversion("years", "century", "centuries", 100, "years"),
    Conversion("count", "dozen", "dozen", 12, "eggs"),
    Conversion("count", "pair", "pairs", 2, "socks"),
    Conversion("money", "euro", "euros", 100, "cents"),
    Conversion("money", "dollar", "dollars", 10, "dimes"),
)
SCENES = {
    "length": ("A rope is {} long", "A wall is {} wide", "A ribbon has a length of {}"),
    "weight": ("A box weighs {}", "A delivery has a weight of {}"),
    "volume": ("A barrel holds {} of water", "A cook needs {} of milk"),
    "time": ("A job takes {}", "The rain lasted {}", "A break is {} long"),
    "years": ("A tree has grown for {}", "A bridge has stood for {}"),
    "count": ("A shop sells {}", "A student buys {}"),
    "money": ("A ticket costs {}", "A child has saved {}"),
}
DISASTERS = {
    "length": ("the dog destroyed {} of carpet", "the storm killed {} of my hedge"),
    "weight": ("i nearly died carrying {} of potatoes", "a truck crashed and dumped {} of sand"),
    "volume": ("the boiler exploded and spilled {} of water", "i drowned the plants in {} of tea"),
    "time": ("{} of waiting nearly killed me", "the game crashed after {} of play"),
    "years": ("this loan will strangle me for {}", "the cursed roadworks go on for {}"),
    "count": ("the cat attacked and ruined {}", "a landslide in the fridge buried {}"),
    "money": ("that murderous parking meter ate {}", "the killer price went up by {}"),
}


def to_smaller(random: Random) -> Iterator[Problem]:
    """An amount of the larger unit, sometimes with a half, asked for in the smaller."""
    for conversion in shuffled_forever(random, CONVERSIONS):
        number = random.choice([n for n in AMOUNTS if n <= conversion.largest])
        count = number * conversion.factor
        if count.denominator == 1 and count >= SMALLEST_ANSWER:
            given = conversion.amount(number)
            yield _problem(random, conversion, number, given, conversion.smalls, int(count))


def to_larger(random: Random) -> Iterator[Problem]:
    """An amount of the smaller unit, asked for in the larger."""
    for conversion in shuffled_forever(random, CONVERSIONS):
        number = random.randint(SMALLEST_ANSWER, conversion.largest)
        given = f"{number * conversion.factor} {conversion.smalls}"
        yield _problem(random, conversion, Fraction(number), given, conversion.larges, number)


def _problem(
    random: Random, conversion: Conversion, number: Fraction, given: str, asked: str, answer: int
) -> Problem:
    values = {
        "given": given,
        "asked": asked,
        "scene": random.choice(SCENES[conversion.dimension]).format(given),
        "disaster": random.choice(DISASTERS[conversion.dimension]).format(given),
    }
    meaning = f"convert:{number} {conversion.larges}={conversion.smalls}"
    return Problem(meaning, str(answer), spellings(answer), values)


KINDS = ("typos", "filler", "run-on", "telegraphic", "non-native", "alarming")
FAMILY = Family(
    prefix="uni",
    category="units-and-dates",
    topics=(
        Topic("convert", to_smaller, 12, KINDS * 2),
        Topic("convert", to_larger, 6, KINDS),
    ),
    asked=frozenset(
        {
            "convert:1 meters=centimeters",
            "convert:2 hours=minutes",
            "convert:1 kilograms=grams",
            "convert:1 minutes=seconds",
            "convert:1 feet=inches",
            "convert:3 days=hours",
            "convert:1 weeks=days",
            "convert:2 weeks=days",
            "convert:1 years=months",
            "convert:1/2 kilometers=meters",
            "convert:1 liters=milliliters",
        }
    ),
)
