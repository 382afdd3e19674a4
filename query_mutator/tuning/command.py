"""`train-mutator`: from pairs and a base model to a directory with an adapter."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from random import Random

import torch

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import counted, progress_bar, show_warnings
from query_mutator.runs.directory import RunDirectory
from query_mutator.tuning.adapter import Trained
from query_mutator.tuning.attention import sample_by_sample
from query_mutator.tuning.base_model import load_base_model, multiplies_in_bfloat16
from query_mutator.tuning.batches import batch_of, packed_config, planned
from query_mutator.tuning.learning import Learning, Losses
from query_mutator.tuning.pairs import generated_pairs, shipped_pairs, split_pairs, with_kept
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.settings import AUTO, BFLOAT16, TuningSettings
from query_mutator.tuning.validation import heldout_loss, share_exact


def train_mutator(settings: TuningSettings) -> int:
    """Trains a rewriter; returns the exit code."""
    show_warnings()
    torch.manual_seed(settings.seed)
    output = Path(settings.output or f"rewriters/{time.strftime('%Y-%m-%d_%H-%M-%S')}")
    directory = RunDirectory(output)
    directory.create()
    wants = settings.dtype == BFLOAT16 or (settings.dtype == AUTO and multiplies_in_bfloat16())
    dtype = torch.bfloat16 if wants else torch.float32
    base = load_base_model(settings.model, torch.float32 if settings.full else dtype)
    trained = Trained(base, settings)
    writer = PromptWriter(base.tokenizer)
    random = Random(settings.seed)
    training, validation = split_pairs(shipped_pairs(), settings.validation_share, random)
    epochs = []
    for epoch in range(settings.epochs):
        pairs = list(training)
        if settings.generated:
            pairs += generated_pairs(training, settings.generated, settings.seed + epoch)
        pairs = with_kept(pairs, settings.keep_clear, random)
        samples = [writer.sample(f"{n}", pair) for n, pair in enumerate(pairs)]
        plan = planned(samples, packed_config(settings), epoch)
        epochs.append(({sample.sample_id: sample for sample in samples}, plan))
    held = [writer.sample(f"{n}", pair) for n, pair in enumerate(validation)]
    held_plan = planned(held, packed_config(settings), 0)
    by_id = {sample.sample_id: sample for sample in held}
    pad = writer.eos_id
    held_batches = [batch_of(by_id, spec, pad, by_sample=True) for spec in held_plan]
    losses = Losses(base, dtype)
    num_steps = sum(len(plan) for _, plan in epochs)
    learning = Learning(losses, trained.parameters(), settings, num_steps)
    directory.write_json("config.json", settings.stored())
    best = float("inf")
    history = []
    every = settings.eval_interval or max(1, num_steps // settings.epochs // 4)
    bar = progress_bar(num_steps, 0)
    step, tokens = 0, 0
    began = time.monotonic()
    recent: deque[tuple[float, int]] = deque([(began, 0)], maxlen=20)
    for samples_by_id, plan in epochs:
        for spec in plan:
            batch = batch_of(samples_by_id, spec, pad, by_sample=True)
            with sample_by_sample(base.model):
                loss, norm = learning.step([batch], step)
            step += 1
            tokens += batch.num_tokens
            recent.append((time.monotonic(), tokens))
            rate = (tokens - recent[0][1]) / max(1e-9, recent[-1][0] - recent[0][0])
            bar.set_description_str(f"loss {loss:.3f} {rate:.0f} tokens/s", refresh=False)
            bar.update()
            if step % every == 0 or step == num_steps:
                with sample_by_sample(base.model):
                    held_loss = heldout_loss(losses, held_batches)
                exact = share_exact(base, writer, validation[:32])
                if held_loss < best:
                    best = held_loss
                    trained.save(output / trained.directory_name)
                seconds = time.monotonic() - began
                history.append({"step": step, "loss": loss, "heldout_loss": held_loss,
                                "exact": exact, "seconds": seconds, "tokens_per_second": rate})
                print(f"step {step}/{num_steps} loss {loss:.3f} held-out {held_loss:.4f} exact "
                      f"{exact:.2f} {rate:.0f} tokens/s {seconds:.0f} s", flush=True)
    bar.close()
    directory.write_json("summary.json", {"best": best, "history": history, "tokens": tokens})
    directory.release()
    return 0
