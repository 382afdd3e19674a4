"""A training that runs out of memory: a line that says what takes less, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from query_mutator.runs.directory import CHECKPOINTS, SUMMARY
from tests import killable
from tests.killable import ended
from tests.test_tuning_training import PAIRS
from tests.tiny_models import make_llama
from train_mutator_lm import main

LONG = 2000
"""Characters, so tokens, of the one long row: its logits are LONG * VOCABULARY floats."""
VOCABULARY = 50_000


@pytest.mark.slow
def test_where_memory_runs_out_a_line_says_what_takes_less_and_what_was_saved_goes_on(
    tmp_path: Path,
) -> None:
    model = make_llama(tmp_path / "llama", vocab_size=VOCABULARY, max_position_embeddings=4096)
    rows = [{"prompt": typed, "completion": meant} for typed, meant in PAIRS]
    rows.append({"prompt": "all of it", "completion": "so " * (LONG // 3)})
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    output, log = tmp_path / "made", tmp_path / "log"
    argv = ["--model", str(model), "--data", str(data), "--output", str(output), "--epochs", "1"]
    argv += ["--bucket-edges", "128", "--token-budget", str(2 * LONG), "--save-interval", "1"]
    argv += ["--validation-share", "0", "--lora-rank", "4", "--dtype", "float32"]
    # From the checkpoint of the first step on, which is one of short rows.
    first, room = output / CHECKPOINTS / "step-000000000001.safetensors", LONG * VOCABULARY * 2
    process = killable.forked(killable.command, main, argv, log, first, 0, 0, room)
    assert ended(process) == 2
    said = log.read_text().strip().splitlines()[-2:]
    assert said[0].startswith("error: out of memory. It takes less with a lower --token-budget")
    assert "a smaller --lora-rank or --gradient-checkpointing" in said[0]
    assert f"--resume --output {output}" in said[1]
    assert "Traceback" not in log.read_text()
    assert max((output / CHECKPOINTS).iterdir()) == first
    assert not (output / SUMMARY).exists()
    assert main(["--resume", "--output", str(output)]) == 0
    assert json.loads((output / SUMMARY).read_text())["steps"] == 2
