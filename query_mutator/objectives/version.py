"""Which score the shipped objectives give: what is compared has to be scored alike."""

from __future__ import annotations

from collections.abc import Sequence

SCORING = 4
"""To be raised with any change of what a shipped objective pays for.

4: drift learned from four more hands; ranges, choices and other units are no facts; yes, no, signs
and negative numbers count in closeness.
3: key facts are understood as people write them; closeness counts what an answer says beyond the
question; drift is the asking of another question, and to leave a side story out is none.
2: key facts by their words; closeness to the reference, an echo of the question included; drift by
the distance of rewrite and question."""
UNTOLD = 2
"""What does not say by which score it was paid, was paid by this one or one before."""


def is_versioned(objective: str) -> bool:
    """Whether the objective is a shipped one: what a user's own pays for is the user's to know."""
    return ".py:" not in objective


def named(scores: Sequence[int]) -> str:
    """Versions of the score, in words.

    >>> named([2, 3])
    'score 2 or before, then score 3'
    """
    return ", then ".join(f"score {one}{' or before' * (one <= UNTOLD)}" for one in scores)
