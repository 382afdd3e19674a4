"""Words by which an answer is told from what is only mentioned."""

from __future__ import annotations

from query_mutator.english.words import FUNCTION_WORDS


def listed(words: str) -> frozenset[str]:
    """The words of a list with spaces between."""
    return frozenset(words.split())


DENYING = listed(
    "not no never nor neither cannot without t isn't wasn't aren't weren't doesn't don't didn't "
    "isnt wasnt arent dont doesnt"
)
CONTRASTING = listed(
    "unlike than instead like besides except although though while whereas before until till "
    "after near beside formerly former later then also too second another other both similar "
    "confused related next along as"
)
TAKING_BACK = listed("mistaken oops scratch correction")
TAKING_BACK_FIRST = listed("actually wait sorry no rather")
"""These only at the start of a clause: "it is actually a fruit" takes nothing back."""
TAKING_BACK_PAIRS = frozenset(
    (
        ("i", "mean"),
        ("was", "wrong"),
        ("correct", "that"),
        ("correct", "this"),
        ("correct", "myself"),
    )
)
NAMING = listed(
    "is are was were called named be being become becomes means mean known say says it's that's "
    "equals = : - – → makes make gives by in"
)
"""An answer stands after these."""
LEADING_UP = (
    FUNCTION_WORDS
    | NAMING
    | listed(
        "its his her type kind sort form typically usually often around approximately exactly "
        "roughly just only simply small large big long it's"
    )
)
"""What may stand between."""
CLAUSE_ENDS = frozenset(".,;:!?…|(–—") | listed(
    "but while whereas although though unlike which because"
)
GREETING = listed(
    "great question sure oh haha ooh hi hello easy fun nice lucky yes no well ah wow good right ok "
    "okay aha yum poor hey thanks sorry let quick answer"
)
"""With a capital at the start of an answer, and no name."""
