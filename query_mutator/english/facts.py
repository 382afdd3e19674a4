"""Whether a text contains the facts that a right answer must contain."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

NUMBER_WORDS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|"
    "sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
)
IN_A_LARGER_NUMBER = (
    r"(?<!ty-)(?<!ty )(?<!hundred )(?<!hundred and )",
    rf"(?![- ](?:and )?(?:{NUMBER_WORDS}|hundred|thousand|million)\b)",
)


def find_facts(answer: str, facts: Sequence[Sequence[str]]) -> list[bool]:
    """For each fact, whether one of its alternatives is in the answer.

    >>> find_facts("It has EIGHT legs, not 1,000.", [["8", "eight"], ["1000"], ["six"]])
    [True, True, False]
    """
    text = normalise(answer)
    return [any(_pattern(alternative).search(text) for alternative in fact) for fact in facts]


def normalise(text: str) -> str:
    """The text without accents, case, or separators within numbers."""
    text = unicodedata.normalize("NFKD", text)
    text = "".join(character for character in text if not unicodedata.combining(character))
    text = text.replace("’", "'").casefold()
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    return " ".join(text.split())


@lru_cache(maxsize=20_000)
def _pattern(alternative: str) -> re.Pattern[str]:
    wanted = normalise(alternative)
    # "8" is in "8 legs", in "8kg" and in "8.00", not in "18", "80" or "8.5".
    if re.search(rf"\b(?:{NUMBER_WORDS}|hundred|thousand)$", wanted):
        # "three" is in "three legs", not in "twenty-three" or "three hundred".
        before, after = IN_A_LARGER_NUMBER
        return re.compile(rf"(?<!\w){before}{re.escape(wanted)}(?!\w){after}")
    before = r"(?<![\w.])" if wanted[:1].isdigit() else r"(?<!\w)"
    after = r"(?!\d|\.\d*[1-9])" if wanted[-1:].isdigit() else r"(?!\w)"
    return re.compile(before + re.escape(wanted) + after)
