"""The gap between twins in a sentence and as tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from query_mutator.base.tables import layout
from query_mutator.base.terminal import counted
from query_mutator.evaluation.comparison import POLICY
from query_mutator.evaluation.gap import REWRITER, SCORE, Closed, Closer, Gap
from query_mutator.evaluation.measuring import UNCHANGED
from query_mutator.evaluation.moved import parts_told, with_interval
from query_mutator.evaluation.statistics import FEWEST_SHOWN, Difference

NONE = "—"
MARK = "*"


def gap_sentence(gap: Gap, best_single: str) -> str:
    """What a perfect clean-up would be worth, and how much of that is done.

    `best_single` is the operator (or unchanged) that was best on training questions.
    """
    side = gap.sides[SCORE]
    parts = parts_told({name: side.gap for name, side in gap.sides.items() if name != SCORE})
    told = f" ({parts})" if parts else ""
    pairs = counted(gap.pairs, "question")
    by_policy = gap.closed_by(POLICY).share
    if not side.told or by_policy is None:
        change = f"{with_interval(side.gap)}{told}"
        if side.gap.groups < FEWEST_SHOWN:
            few = "is" if gap.pairs == 1 else "are"
            return (
                f"No gap is shown: {counted(gap.pairs, 'pair')} {few} too few to tell ({change})."
            )
        return f"No gap is shown between clear and messy wording on {pairs}: {change}."
    says = f"Asked clearly, the same {pairs} score {with_interval(side.gap)} higher{told}: "
    says += "the policy closes "
    says += f"{_share(by_policy)} of that"
    if best_single != UNCHANGED and (always := gap.closed_by(best_single).share):
        says += f", always using {best_single} {_share(always)}"
    return f"{says}."


def gap_as_text(gap: Gap, best_single: str) -> list[str]:
    """The two sides of the gap, what closes it, and the sentence, a paragraph each."""
    sides = [("", "clear", "messy", "gap")] + [
        (name, f"{side.clear:.3f}", f"{side.messy:.3f}", with_interval(side.gap))
        for name, side in gap.sides.items()
    ]
    heads = [head for name in gap.sides for head in (name, "of the gap")]
    rows = [("", *heads), *(_row(closer, gap) for closer in gap.closers)]
    parts = [
        "the gap between twins: the same questions asked clearly and as people type, unchanged "
        f"({counted(gap.pairs, 'pair')})",
        layout(sides, indent="  "),
        "what is gained on the messy wording, and the share of the gap that this closes",
        layout(rows, indent="  "),
    ]
    if any(closer.asks_mutator and closer.name != REWRITER for closer in gap.closers):
        several = any(closer.name == REWRITER for closer in gap.closers)
        mean = f": {REWRITER} is the mean of such operators" if several else ""
        parts.append(f"{MARK} the mutator model rewrites{mean}")
    return [*parts, gap_sentence(gap, best_single)]


def gap_as_json(gap: Gap, best_single: str) -> dict[str, Any]:
    """All figures, with the sentence."""
    return {**asdict(gap), "sentence": gap_sentence(gap, best_single)}


def _row(closer: Closer, gap: Gap) -> tuple[str, ...]:
    mark = f" {MARK}" if closer.asks_mutator and closer.name != REWRITER else ""
    cells = [cell for name in gap.sides for cell in _cells(closer.closes[name])]
    return (f"{closer.name}{mark}", *cells)


def _cells(closed: Closed) -> tuple[str, str]:
    return with_interval(closed.gain), _share(closed.share) if closed.share else NONE


def _share(share: Difference) -> str:
    """The share and its interval in per cent; there is none of a gap told by too few pairs."""
    mean, low, high = (f"{100 * value:.0f}" for value in (share.mean, share.low, share.high))
    return f"{mean} % [{low}, {high}]"
