"""Other ways to say a fact than those that its question lists."""

from __future__ import annotations

import re
from functools import lru_cache

from query_mutator.english.facts.tokens import said_around, words_of
from query_mutator.english.words import sentences

Fact = tuple[str, ...]
SAME = {
    "positive": "plus +",
    "negative": "minus -",
    "hydrogen": "H H2",
    "helium": "He",
    "carbon": "C",
    "nitrogen": "N N2",
    "oxygen": "O O2",
    "neon": "Ne",
    "sodium": "Na",
    "aluminium": "Al",
    "aluminum": "Al",
    "silicon": "Si",
    "sulfur": "S",
    "chlorine": "Cl Cl2",
    "calcium": "Ca",
    "iron": "Fe",
    "copper": "Cu",
    "zinc": "Zn",
    "silver": "Ag",
    "tin": "Sn",
    "gold": "Au",
    "mercury": "Hg",
    "lead": "Pb",
    "uranium": "U",
    "carbon dioxide": "CO2",
    "water": "H2O",
    "salt": "NaCl",
}
"""Signs that stand for a word where they are all of an answer or of its last sentence."""
MOST_WORDS = 3
"""Of an answer in which a sign alone is meant."""
SHORTEST_INITIALS = 2


@lru_cache(maxsize=4096)
def short_wordings(question: str, fact: Fact) -> tuple[re.Pattern[str], ...]:
    """What finds the fact's initials, and its wordings without words of the question.

    >>> finds = lambda pattern, text: bool(pattern.search(text))
    >>> [finds(one, "It is D3.") for one in short_wordings("Which vitamin?", ("vitamin D",))]
    [False, True]
    >>> [finds(one, "In the U.S.") for one in short_wordings("Where?", ("United States",))]
    [True]
    """
    asked = words_of(question)
    found = []
    for wording in fact:
        words = re.split(r"[ -]", wording)
        letters = [word[0].upper() for word in words if word[:1].isalpha()]
        if len(letters) >= SHORTEST_INITIALS and "".join(letters).lower() not in asked:
            found.append(rf"(?<![\w.]){r'[.]?'.join(letters)}(?![\w'])")
        said = [word for word in words if word.casefold() in asked - said_around()]
        kept = " ".join(word for word in words if word not in said)
        if said and kept and (len(kept) == 1 or kept.casefold() not in said_around()):
            found.append(rf"(?<!\w){re.escape(kept)}{r'[0-9]?' if len(kept) == 1 else ''}(?!\w)")
    return tuple(map(re.compile, dict.fromkeys(found)))


def is_its_sign(answer: str, fact: Fact) -> bool:
    """Whether a short answer, after a greeting perhaps, is the sign of a fact.

    >>> is_its_sign("It's Fe.", ("iron",)), is_its_sign("+ and −", ("negative",))
    (True, True)
    """
    last = (sentences(answer) or [""])[-1]
    words = last.replace("−", "-").replace("–", "-").split()
    plain = {word.strip(".,!?*()") for word in words}
    signs = {sign for wording in fact for sign in SAME.get(wording.casefold(), "").split()}
    return len(words) <= MOST_WORDS and bool(plain & signs)
