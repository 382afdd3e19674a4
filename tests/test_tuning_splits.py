"""What of a data set is trained on and what is held out, and what of it is left to learn."""

from __future__ import annotations

from pathlib import Path

import pytest

from batching import load_tokenizer
from query_mutator.base.terminal import show_warnings
from query_mutator.tuning.batches import Packing
from query_mutator.tuning.material import Material, load_material
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.settings import settings_of
from tests.test_tuning_material import ROWS, sft, write_rows
from tests.tiny_models import make_llama
from train_mutator_lm import main


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_llama(tmp_path_factory.mktemp("llama")))


def material_of(model: str, data: str, **more: str) -> Material:
    settings = settings_of({"model": model, "data": data, "epochs": "1"} | more)
    writer = PromptWriter(load_tokenizer(model))
    return load_material(settings, writer, Packing.BY_SAMPLE)


def test_rows_that_are_the_same_are_on_one_side(model: str, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "train.jsonl", ROWS * 3)
    material = material_of(model, data, validation_share="0.25")
    assert material.validation
    sides = [
        [sample.input_ids for sample in epoch.samples.values()]
        for epoch in (material.epochs[0], material.validation)
    ]
    assert [len(side) for side in sides] == [54, 18]
    assert not set(sides[0]) & set(sides[1])


def test_the_shared_beginning_is_that_of_held_out_samples_too(model: str, tmp_path: Path) -> None:
    rows = [{"prompt": f"Alike {n}: ", "completion": "x"} for n in range(20)]
    rows.append({"prompt": "Else: ", "completion": "x"})
    data = write_rows(tmp_path / "train.jsonl", rows)
    for seed in range(60):
        made = material_of(model, data, validation_share="0.05", seed=str(seed))
        assert made.shared == 0, "whichever row is held out"


def test_what_is_cut_before_anything_is_learned_is_told(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"prompt": "long " * 30 + f"{n}: ", "completion": "word"} for n in range(8)]
    data = write_rows(tmp_path / "train.jsonl", rows)
    cut = ["--token-budget", "64", "--pack-max-len", "64"]
    assert main(sft(model, data, tmp_path / "made", *cut)) == 2
    assert "nothing is left to learn in a row of 64 tokens" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
    show_warnings()
    short = [{"prompt": f"{n}: ", "completion": "word " * 30} for n in range(8)]
    data = write_rows(tmp_path / "mixed.jsonl", [*rows, *short])
    material_of(model, data, token_budget="64", pack_max_len="64", validation_share="0")
    told = capsys.readouterr().err
    assert "16 samples longer than the 64 tokens of a row" in told
    assert "of 8 nothing" in told
