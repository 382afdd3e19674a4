"""The rewrites a policy can choose from. They are data: see `default.toml`."""

from operators.loading import DEFAULT_FILE, load_operators, select_operators
from operators.operator import Operator

__all__ = ["DEFAULT_FILE", "Operator", "load_operators", "select_operators"]
