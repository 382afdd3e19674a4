"""How much of what a reference says beyond the question an answer says, as its answer."""

from query_mutator.objectives.closeness.measure import Closeness, find_closeness

__all__ = ["Closeness", "find_closeness"]
