"""How well the check tells faithful rewrites from others, before they are answered.

    python -m benchmarks.faithfulness
    python -m benchmarks.faithfulness --rewrites FILE   # labelled by hand, one JSON in each line:
        {"typed": "…", "rewrite": "…", "label": "same"}   same, other, lost or answers

Without a file: the rewrites labelled by hand in query_mutator/data/rewrites, and the held-out
questions asked messily beside the same asked clearly, which must pass. Drift's weights were learned
on the rewrites of `dev`, among others; nothing was learned on the rest.

Precision is the share of the refused rewrites that do ask something else; recall, the share of
those that ask something else that are refused. `by rules` are those that drift alone would have let
through.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scoring.drift_pairs import CLEAN_UP, Labelled, rewrites, twins
from query_mutator.base.errors import UserError
from query_mutator.base.tables import as_markdown
from query_mutator.base.terminal import OneLineParser, as_main, leave
from query_mutator.data.loading import rows_of, text_in
from query_mutator.environment.faithful import DRIFTED, unfaithful_flow
from query_mutator.models.client import ModelClient
from query_mutator.models.encoders import Encoder, load_encoder
from query_mutator.models.flows import Encode, FlowRunner, encode_handler
from query_mutator.operators import named_operators

PARTS = ("dev", "test", "test_2")
SAME = "same"
LABELS = (SAME, "other", "lost", "answers")
HEAD = ("", "rewrites", "let through", "refused", "by rules", "precision", "recall")


@dataclass(frozen=True)
class Checked:
    """A labelled rewrite, and why it was refused; "" where it was not."""

    pair: Labelled
    why: str


def check(pairs: Sequence[Labelled], encoder: Encoder) -> list[Checked]:
    """What the check says of each rewrite."""
    runner: FlowRunner[str] = FlowRunner(
        ModelClient([]), {Encode: encode_handler(encoder.encode_each)}
    )
    (clarify,) = named_operators(["clarify"])
    whys = runner.run(
        [
            unfaithful_flow(pair.question, pair.rewrite, clarify.edit(pair.question))
            for pair in pairs
        ]
    )
    return [Checked(pair, why) for pair, why in zip(pairs, whys, strict=True)]


def heldout_twins() -> list[Labelled]:
    """The held-out questions asked messily, each with the clear question as its rewrite."""
    found = []
    for pair in twins("heldout"):
        kind, messy, clear = "messy question, clear twin", pair.question, pair.rewrite
        if pair.kind != CLEAN_UP:
            kind, messy, clear = f"messy twin: {pair.style}", clear, messy
        found.append(Labelled(pair.id, messy, clear, False, kind, pair.source))
    return found


def labelled(file: Path) -> list[Labelled]:
    """The rewrites that somebody labelled by hand; `UserError` names the line that is none."""
    found = []
    for line, row in rows_of(file):
        try:
            found.append(_labelled(line, row))
        except ValueError as error:
            raise UserError(f"{file}, line {line}: {error}") from error
    if not found:
        raise UserError(f"{file} has no rewrite; each line is an object of typed, rewrite, label")
    return found


def _labelled(line: int, row: object) -> Labelled:
    if isinstance(row, ValueError):
        raise row
    if not isinstance(row, dict):
        raise ValueError("not an object of typed, rewrite and label")
    typed, rewrite, label = (
        text_in(row, key, required=True) for key in ("typed", "rewrite", "label")
    )
    if label not in LABELS:
        raise ValueError(f"the label must be one of {', '.join(LABELS)}, not {label[:40]!r}")
    return Labelled(str(line), typed, rewrite, label != SAME, label, "by hand")


def rows(name: str, checked: Sequence[Checked]) -> list[tuple[str, ...]]:
    """The rows of a table: all of a file, and each kind of its rewrites."""
    faithful = [one for one in checked if not one.pair.changed]
    changed = [one for one in checked if one.pair.changed]
    found = [(f"{name}: asks the same", *_shares(faithful))] if faithful else []
    if changed:
        right, refused = (sum(bool(one.why) for one in group) for group in (changed, checked))
        precision = f"{right / refused:.3f}" if refused else ""
        found.append(
            (
                f"{name}: asks something else",
                *_shares(changed)[:-2],
                precision,
                f"{right / len(changed):.3f}",
            )
        )
    for group in (faithful, changed):
        kinds = sorted({one.pair.kind for one in group})
        if kinds != [SAME]:
            found += [
                (f"… {kind}", *_shares([one for one in group if one.pair.kind == kind]))
                for kind in kinds
            ]
    return found


def _shares(group: Sequence[Checked]) -> tuple[str, ...]:
    refused = sum(bool(one.why) for one in group)
    by_rules = sum(bool(one.why) and not one.why.startswith(DRIFTED) for one in group)
    let_through = f"{1 - refused / len(group):.3f}"
    return str(len(group)), let_through, f"{refused / len(group):.3f}", str(by_rules), "", ""


def run(argv: Sequence[str] | None = None) -> int:
    """Checks, and prints the table; returns the exit code."""
    parser = OneLineParser(
        prog="python -m benchmarks.faithfulness",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rewrites", type=Path, metavar="FILE", help="rewrites labelled by hand")
    args = parser.parse_args(argv)
    files: Iterable[tuple[str, Sequence[Labelled]]]
    if args.rewrites:
        files = [(args.rewrites.stem, labelled(args.rewrites))]
    else:
        files = [
            ("held-out twins", heldout_twins()),
            *((part, list(rewrites(part))) for part in PARTS),
        ]
    encoder = load_encoder()
    found = [row for name, pairs in files for row in rows(name, check(pairs, encoder))]
    print(as_markdown([HEAD, *found]))
    return 0


main = as_main(run)

if __name__ == "__main__":
    leave(main())
