"""What an answer says of that which the reference says beyond the question."""

from query_mutator.objectives.closeness.measure import Closeness, find_closeness

__all__ = ["Closeness", "find_closeness"]
