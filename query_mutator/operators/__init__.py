"""The rewrites a policy can choose from. They are data: see `default.toml`."""

from query_mutator.operators.loading import (
    DEFAULT_FILE,
    load_operators,
    named_operators,
    select_operators,
    shipped_operators,
)
from query_mutator.operators.operator import Operator

__all__ = [
    "DEFAULT_FILE",
    "Operator",
    "load_operators",
    "named_operators",
    "select_operators",
    "shipped_operators",
]
