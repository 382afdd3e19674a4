"""Families of questions whose answers are computed: arithmetic, units and dates."""

from query_mutator.data.families import arithmetic, dates, units
from query_mutator.data.families.problem import Family

FAMILIES: tuple[Family, ...] = (arithmetic.FAMILY, units.FAMILY, dates.FAMILY)

__all__ = ["FAMILIES", "Family"]
