"""How well a rewriter does on pairs that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import torch

from query_mutator.tuning.base_model import BaseModel
from query_mutator.tuning.batches import Batch
from query_mutator.tuning.learning import Losses
from query_mutator.tuning.pairs import Pair
from query_mutator.tuning.prompts import PromptWriter

AT_ONCE = 16
MOST_REWRITES = 32
"""Held-out pairs that are rewritten at each look: word by word, which takes its time."""


@torch.no_grad()
def heldout_loss(losses: Losses, batches: Sequence[Batch]) -> float:
    """The mean loss of a token that counts."""
    counted = sum(batch.counted for batch in batches)
    total = 0.0
    for batch in batches:
        with losses.apart(batch):
            total += losses.total(batch).item()
    return total / max(counted, 1e-9)


@torch.no_grad()
def greedy_tokens(
    base: BaseModel, prompts: Sequence[Sequence[int]], end_id: int, most_tokens: int
) -> list[list[int]]:
    """What the model says after each prompt, always the likeliest token, up to the end token."""
    said: list[list[int]] = []
    for first in range(0, len(prompts), AT_ONCE):
        some = prompts[first : first + AT_ONCE]
        longest = max(map(len, some))
        padding = [longest - len(prompt) for prompt in some]
        ids = [[end_id] * pad + list(prompt) for pad, prompt in zip(padding, some, strict=True)]
        mask = [[0] * pad + [1] * (longest - pad) for pad in padding]
        made: Any = base.model.generate(
            input_ids=torch.tensor(ids, device=base.device),
            attention_mask=torch.tensor(mask, device=base.device),
            max_new_tokens=most_tokens,
            do_sample=False,
            # A base may punish words that it has read, and a rewrite repeats the question's.
            repetition_penalty=1.0,
            use_cache=True,
            pad_token_id=end_id,
            eos_token_id=end_id,
        )
        for row in made[:, longest:].tolist():
            said.append(row[: row.index(end_id)] if end_id in row else row)
    return said


def looked_at(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    """Some of the pairs, the same at each look: files have those of a kind one after the other."""
    return Random(seed).sample(pairs, min(MOST_REWRITES, len(pairs)))


def share_exact(
    base: BaseModel, writer: PromptWriter, pairs: Sequence[Pair], *, seed: int
) -> float:
    """The share of pairs, of a sample of them, of which the greedy rewrite is the wanted one."""
    pairs = looked_at(pairs, seed)
    end_id = writer.end_id
    wanted = [writer.completion(pair.rewrite)[:-1] for pair in pairs]
    prompts = [writer.prompt(pair.question) for pair in pairs]
    # One token more than the longest: a rewrite that goes on is not the wanted one.
    made = greedy_tokens(base, prompts, end_id, max(map(len, wanted)) + 1)
    return sum(one == other for one, other in zip(made, wanted, strict=True)) / len(pairs)
