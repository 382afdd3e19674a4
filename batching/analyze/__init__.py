"""How long samples are, what buckets make of them, and what would do better."""

from batching.analyze.edges import Goal, suggest_edges
from batching.analyze.efficiency import BucketEfficiency, BucketRow
from batching.analyze.histogram import LengthHistogram
from batching.analyze.plots import draw_buckets, draw_histogram, draw_report, draw_suggestion
from batching.analyze.report import EfficiencyReport, Way, efficiency_report
from batching.analyze.suggestion import Suggestion, suggest

__all__ = [
    "BucketEfficiency",
    "BucketRow",
    "EfficiencyReport",
    "Goal",
    "LengthHistogram",
    "Suggestion",
    "Way",
    "draw_buckets",
    "draw_histogram",
    "draw_report",
    "draw_suggestion",
    "efficiency_report",
    "suggest",
    "suggest_edges",
]
