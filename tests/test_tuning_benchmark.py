"""The measurement of the trainer's speed: who is timed, in which order, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks import tuning
from benchmarks.tuning import Took, table, take_turns
from tests.tiny_models import make_llama


class Noting:
    """A contender that notes when it is asked for what."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self._notes = name, notes
        self.model = torch.nn.Linear(1, 1)

    def warm_up(self) -> None:
        self._notes.append(f"{self.name} warms up")

    def learn(self) -> None:
        self._notes.append(self.name)


def test_all_are_warm_before_the_first_round_and_take_turns_in_each() -> None:
    notes: list[str] = []
    found = take_turns([Noting("a", notes), Noting("b", notes)], 3)
    assert notes == ["a warms up", "b warms up", "a", "b", "a", "b", "a", "b"]
    assert [len(took) for took in found] == [3, 3]


def test_the_table_has_medians_and_ranges_and_compares_round_by_round() -> None:
    packed = [Took(1.0, 2.0), Took(2.0, 2.0), Took(4.0, 2.0)]
    padded = [Took(3.0, 5.0), Took(4.0, 5.0), Took(20.0, 6.0)]
    rows = [line.split(" | ") for line in table(["| packed", "| padded"], [packed, padded], 120)
            .splitlines()]  # fmt: skip
    assert rows[2][1:] == [
        "60 [30, 120]",
        "60 [60, 60]",
        "1.00 [1.00, 1.00]",
        "1.00 [1.00, 1.00] |",
    ]
    assert rows[3][1:] == ["30 [6, 40]", "24 [20, 24]", "3.00 [2.00, 5.00]", "2.50 [2.50, 3.00] |"]


@pytest.mark.slow
def test_all_three_train_the_same_weights_on_the_same_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_llama(tmp_path / "model", max_position_embeddings=2048)
    assert tuning.main(["--model", str(model), "--pairs", "24", "--dtype", "float32"]) == 0
    told, *rows = capsys.readouterr().out.splitlines()
    assert told.startswith("24 pairs, ")
    assert told.endswith("; the model and its products in float32, the adapters in float32")
    assert [row.split(" | ")[0].strip("| ") for row in rows[2:]] == [
        "ours, packed",
        "TRL's SFTTrainer, packed",
        "ours, 32 rows padded to the longest sample",
    ]
