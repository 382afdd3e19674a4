"""How well a rewriter does on pairs that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from query_mutator.operators.tuned import tuned_messages
from query_mutator.tuning.base_model import BaseModel
from query_mutator.tuning.batches import Batch
from query_mutator.tuning.learning import Losses
from query_mutator.tuning.pairs import Pair
from query_mutator.tuning.prompts import PromptWriter

AT_ONCE = 16
ROOM_TOKENS = 16


@torch.no_grad()
def heldout_loss(losses: Losses, batches: Sequence[Batch]) -> float:
    """The mean loss of a token that counts."""
    counted = sum(float(batch.weights.sum()) for batch in batches)
    return sum(losses.total(batch).item() for batch in batches) / max(counted, 1e-9)


@torch.no_grad()
def greedy_rewrites(
    base: BaseModel, writer: PromptWriter, questions: Sequence[str], max_tokens: int
) -> list[str]:
    """What the model makes of each question, always taking the likeliest token."""
    rewrites: list[str] = []
    device = next(base.model.parameters()).device
    for first in range(0, len(questions), AT_ONCE):
        prompts = [writer.prompt(tuned_messages(q)) for q in questions[first : first + AT_ONCE]]
        longest = max(map(len, prompts))
        padding = [longest - len(prompt) for prompt in prompts]
        ids = [[writer.eos_id] * pad + prompt for pad, prompt in zip(padding, prompts, strict=True)]
        mask = [[0] * pad + [1] * (longest - pad) for pad in padding]
        made: Any = base.model.generate(
            input_ids=torch.tensor(ids, device=device),
            attention_mask=torch.tensor(mask, device=device),
            max_new_tokens=max_tokens,
            do_sample=False,
            use_cache=True,
            pad_token_id=writer.eos_id,
            eos_token_id=writer.eos_id,
        )
        for row in made[:, longest:].tolist():
            text = base.tokenizer.decode(row, skip_special_tokens=True)
            rewrites.append(text.strip())
    return rewrites


def share_exact(
    base: BaseModel, writer: PromptWriter, pairs: Sequence[Pair]
) -> float:
    """The share of pairs of which the greedy rewrite is the wanted one, to the letter."""
    if not pairs:
        return 0.0
    longest = max(len(writer.completion(pair.rewrite)) for pair in pairs)
    questions = [pair.question for pair in pairs]
    made = greedy_rewrites(base, writer, questions, longest + ROOM_TOKENS)
    exact = [text == pair.rewrite.strip() for text, pair in zip(made, pairs, strict=True)]
    return sum(exact) / len(exact)
