"""How often the check lets faithful rewrites through and refuses others, on labelled ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import faithfulness
from benchmarks.faithfulness import Checked, check, heldout_twins, rows
from benchmarks.scoring.drift_pairs import Labelled, rewrites
from query_mutator.models.encoders import Encoder
from tests.embedding import remembering

SYDNEY = "whats teh capital of austrailia i always thougt sydney but my friend says no"
BY_HAND = [
    {"typed": SYDNEY, "rewrite": "What is the capital of Australia?", "label": "same"},
    {"typed": SYDNEY, "rewrite": "How do whales sleep at night?", "label": "other"},
    {"typed": SYDNEY, "rewrite": "The capital of Australia is Canberra.", "label": "answers"},
]


def shares(pairs: list[Labelled]) -> tuple[float, float]:
    """The share of the faithful ones let through, and of the others refused."""
    checked = check(pairs, Encoder(remembering(1)))
    faithful = [not one.why for one in checked if not one.pair.changed]
    refused = [bool(one.why) for one in checked if one.pair.changed]
    return sum(faithful) / max(1, len(faithful)), sum(refused) / max(1, len(refused))


def test_most_faithful_rewrites_pass_and_most_others_are_refused() -> None:
    """On every third labelled rewrite: .94 of the ones and .84 of the others."""
    passed, refused = shares(list(rewrites("dev"))[::3])
    assert passed > 0.88
    assert refused > 0.78


def test_most_clear_twins_pass() -> None:
    twins = heldout_twins()
    assert len(twins) == 587
    assert not any(pair.changed for pair in twins)
    passed, _ = shares(twins[::6])
    assert passed > 0.8


def test_the_table_counts_what_is_refused_by_whether_it_should_be() -> None:
    def one(kind: str, why: str) -> Checked:
        return Checked(Labelled("", "", "", kind != "same", kind, ""), why)

    found = rows(
        "file",
        [
            *(one("same", why) for why in ("", "", "", "drift 0.30: Lima put in")),
            *(one("name", why) for why in ("drift 0.90: Lima put in", "a name left out: Peru")),
            *(one("number", why) for why in ("drift 0.90: 7 for 9", "")),
        ],
    )
    assert found == [
        ("file: asks the same", "4", "0.750", "0.250", "0", "", ""),
        ("file: asks something else", "4", "0.250", "0.750", "1", "0.750", "0.750"),
        ("… name", "2", "0.000", "1.000", "1", "", ""),
        ("… number", "2", "0.500", "0.500", "0", "", ""),
    ]


def test_rewrites_labelled_by_hand_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in BY_HAND))
    assert faithfulness.main(["--rewrites", str(file)]) == 0
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [line[:4] for line in lines[2:]] == [
        ["mine: asks the same", "1", "1.000", "0.000"],
        ["mine: asks something else", "2", "0.000", "1.000"],
        ["… answers", "1", "0.000", "1.000"],
        ["… other", "1", "0.000", "1.000"],
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "has no rewrite"),
        ("{", "line 1: not valid JSON"),
        ('{"typed": "a", "rewrite": "b"}', "line 1: no 'label'"),
        ('{"typed": "a", "rewrite": "b", "label": "good"}', "must be one of same, other, lost"),
    ],
)
def test_a_file_that_holds_no_labelled_rewrites_is_told(
    content: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(content)
    assert faithfulness.main(["--rewrites", str(file)]) == 2
    assert told in capsys.readouterr().err
