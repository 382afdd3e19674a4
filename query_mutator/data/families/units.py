"""Conversions between units, from the larger to the smaller and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from query_mutator.data.families.numbers import spellings
from query_mutator.data.families.problem import Family, Problem, Topic, shuffled_forever

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
    Conversion("distance", "kilometer", "kilometers", 1000, "meters"),
    Conversion("length", "meter", "meters", 100, "centimeters"),
    Conversion("small", "centimeter", "centimeters", 10, "millimeters"),
    Conversion("length", "foot", "feet", 12, "inches"),
    Conversion("length", "yard", "yards", 3, "feet"),
    Conversion("weight", "kilogram", "kilograms", 1000, "grams"),
    Conversion("load", "metric ton", "metric tons", 1000, "kilograms"),
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
    Conversion("money", "euro", "euros", 100, "cents"),
    Conversion("money", "dollar", "dollars", 10, "dimes"),
)
DOZENS = (HALF, 3 * HALF, Fraction(2), 5 * HALF, *map(Fraction, range(3, 6)))
PAIRS = range(3, 6)
"""Fewer than the doubles and halves of `arithmetic` start with."""
SCENES = {
    "distance": ("A hiking trail is {} long", "A lake is {} wide"),
    "length": ("A rope is {} long", "A stage is {} wide", "A banner has a length of {}"),
    "small": ("A scratch is {} long", "A leaf is {} wide"),
    "weight": ("A box weighs {}", "A bag of rice has a weight of {}"),
    "load": ("A truck carries {} of gravel", "A boat has a weight of {}"),
    "volume": ("A bucket holds {} of water", "A cook needs {} of milk"),
    "time": ("A job takes {}", "A storm lasted {}", "An experiment runs for {}"),
    "years": ("A tree has grown for {}", "A bridge has stood for {}"),
    "money": ("A sandwich costs {}", "A child has saved {}"),
}
DISASTERS = {
    "distance": ("i nearly died after running {}", "the flood destroyed {} of road"),
    "length": ("the dog destroyed {} of carpet", "the storm killed {} of my hedge"),
    "small": ("a killer beetle of {} attacked my shoe", "a crack of {} is murdering my windshield"),
    "weight": ("i nearly died carrying {} of potatoes", "the mice attacked {} of my flour"),
    "load": ("a truck crashed and dumped {} of sand", "a landslide buried us in {} of mud"),
    "volume": ("the boiler exploded and spilled {} of water", "i drowned the garden in {} of tea"),
    "time": ("{} of waiting nearly killed me", "the server was dead for {}"),
    "years": (
        "a ghost has haunted the castle for {}",
        "a bitter feud has raged in my family for {}",
    ),
    "money": ("that murderous parking meter ate {}", "the vending machine robbed me of {}"),
}


def to_smaller(random: Random) -> Iterator[Problem]:
    """An amount of the larger unit, sometimes with a half, asked for in the smaller."""
    for conversion, scene, disaster in _scenes(random):
        number = random.choice([n for n in AMOUNTS if n <= conversion.largest])
        count = number * conversion.factor
        if count.denominator == 1 and count >= SMALLEST_ANSWER:
            given = conversion.amount(number)
            values = {"given": given, "scene": scene.format(given)}
            values |= {"asked": conversion.smalls, "disaster": disaster.format(given)}
            yield _problem(number, conversion.larges, conversion.smalls, int(count), values)


def to_larger(random: Random) -> Iterator[Problem]:
    """An amount of the smaller unit, asked for in the larger."""
    for conversion, scene, disaster in _scenes(random):
        number = random.randint(SMALLEST_ANSWER, conversion.largest)
        given = f"{number * conversion.factor} {conversion.smalls}"
        values = {"given": given, "scene": scene.format(given)}
        values |= {"asked": conversion.larges, "disaster": disaster.format(given)}
        yield _problem(Fraction(number), conversion.larges, conversion.smalls, number, values)


def dozens(random: Random) -> Iterator[Problem]:
    """Dozens of eggs, sometimes with a half, whose eggs are asked for."""
    for number in shuffled_forever(random, DOZENS):
        given = Conversion("count", "dozen", "dozen", 12, "eggs").amount(number)
        yield _problem(number, "dozen", "eggs", int(number * 12), {"given": given})


def pairs(random: Random) -> Iterator[Problem]:
    """Whole pairs, whose single pieces are asked for."""
    for number in shuffled_forever(random, PAIRS):
        yield _problem(Fraction(number), "pairs", "pieces", number * 2, {"n": str(number)})


def _scenes(random: Random) -> Iterator[tuple[Conversion, str, str]]:
    scenes = {name: shuffled_forever(random, texts) for name, texts in SCENES.items()}
    disasters = {name: shuffled_forever(random, texts) for name, texts in DISASTERS.items()}
    for conversion in shuffled_forever(random, CONVERSIONS):
        dimension = conversion.dimension
        yield conversion, next(scenes[dimension]), next(disasters[dimension])


def _problem(
    number: Fraction, larges: str, smalls: str, answer: int, values: dict[str, str]
) -> Problem:
    return Problem(f"convert:{number} {larges}={smalls}", str(answer), spellings(answer), values)


KINDS = ("typos", "filler", "run-on", "telegraphic", "non-native", "alarming")
FAMILY = Family(
    prefix="uni",
    category="units-and-dates",
    topics=(
        Topic("dozens", dozens, 1, ("filler",)),
        Topic("pairs", pairs, 1, ("alarming",)),
        Topic("convert", to_smaller, 11, (*KINDS, *KINDS[:-1])),
        Topic(
            "convert", to_larger, 5, ("typos", "run-on", "telegraphic", "non-native", "alarming")
        ),
    ),
    asked=frozenset(
        {
            "convert:1 meters=centimeters",
            "convert:1/4 hours=minutes",
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
            "convert:1 euros=cents",
        }
    ),
)
