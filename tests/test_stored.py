"""Values read from files are what was stored, or refused in a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import NonNegativeInt

from query_mutator.base.stored import stored_as


@dataclass(frozen=True)
class Kept:
    name: str
    many: NonNegativeInt = 0
    share: float = 0.0
    pairs: tuple[tuple[str, str], ...] = ()
    totals: dict[str, int] | None = None

    def __post_init__(self) -> None:
        if self.name == "none":
            raise ValueError("it has no name")


def test_what_was_stored_comes_back_as_a_copy() -> None:
    totals = {"a": 1}
    found = stored_as(Kept, {"name": "x", "share": 1, "pairs": [["a", "b"]], "totals": totals})
    assert found == Kept("x", share=1.0, pairs=(("a", "b"),), totals=totals)
    assert found.totals is not totals


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({}, "there is no name"),
        ([], "it is []"),
        ({"name": 5}, "name is 5"),
        ({"name": "none"}, "it has no name"),
        ({"name": "x", "colour": 1}, "'colour' is not known"),
        ({"name": "x", "many": True}, "many is not a count"),
        ({"name": "x", "many": -1}, "many is not a count"),
        ({"name": "x", "many": 1.0}, "many is not a count"),
        ({"name": "x", "many": "1"}, "many is not a count"),
        ({"name": "x", "share": "1"}, "share is not a number"),
        ({"name": "x", "share": True}, "share is not a number"),
        ({"name": "x", "share": float("nan")}, "not JSON compliant"),
        ({"name": "x", "share": float("inf")}, "not JSON compliant"),
        ({"name": "x", "totals": []}, "totals is not a table"),
        ({"name": "x", "totals": {"a": "b"}}, "totals.a is not a count"),
        ({"name": "x", "pairs": [["a"]]}, "pairs.0.1 is ['a']"),
    ],
)
def test_anything_else_is_refused_in_a_line(value: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        stored_as(Kept, value)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)
