"""Plain values, as JSON has them: taken for what they were stored as, and made fit to be stored."""

from __future__ import annotations

import functools
import json
import math
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST_SHOWN = 200
KINDS = {
    "int_type": "a count",
    "greater_than_equal": "a count",
    "float_type": "a number",
    "dict_type": "a table",
    "list_type": "a list",
}
"""What should have been there, by pydantic's name of the error."""


def stored_as(kind: type[T], value: Any, name: str = "") -> T:
    """The `kind` that the value stands for, a copy; `ValueError` in a line for anything else.

    Nothing is converted: neither a text nor a truth value passes for a number, nor does a field
    that the kind has not. No number is infinite.
    """
    from pydantic import ValidationError  # --help need not wait for it

    adapter = _adapter(kind)  # type: ignore[arg-type]  # every class can be hashed
    text = json.dumps(value, allow_nan=False)
    try:
        found: T = adapter.validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(_in_words(first, name)) from None
    return found


@functools.cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _in_words(error: Any, name: str) -> str:
    name = name or ".".join(map(str, error["loc"])) or "it"
    if error["type"] == "value_error":  # raised by the kind itself
        return str(error["ctx"]["error"])
    if error["type"] == "missing" and len(error["loc"]) == 1:
        return f"there is no {name}"
    if error["type"] == "unexpected_keyword_argument":
        return f"{name!r} is not known"
    if error["type"] in KINDS:
        return f"{name} is not {KINDS[error['type']]}"
    return f"{name} is {error['input']!r}"[:LONGEST_SHOWN]


def without_infinities(value: Any) -> Any:
    """The value with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: without_infinities(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinities(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
