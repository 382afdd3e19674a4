"""Makes messy twins of clear questions: the same asked as people type."""

from query_mutator.data.messing.rows import STYLES, TwinWriter, messy_twin, twin_rows

__all__ = ["STYLES", "TwinWriter", "messy_twin", "twin_rows"]
