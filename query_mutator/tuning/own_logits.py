"""Whether a model changes its logits after its last matrix: tried, not believed."""

from __future__ import annotations

from typing import Any

import torch

from query_mutator.base.errors import UserError
from query_mutator.tuning.base_model import BaseModel

NUM_TOKENS = 12
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 1e-2, torch.float16: 2e-3}
FADING = ("final_logit_softcapping",)
"""Settings that change large logits and leave small ones nearly alone: few tokens may not tell."""


@torch.no_grad()
def changes_logits(base: BaseModel) -> bool:
    """Whether the model's logits are others than its last matrix makes of its hidden states.

    Some scale them, some cap them, some have no such matrix.
    """
    if any(getattr(base.model.config, name, None) for name in FADING):
        return True
    was_training = base.model.training
    base.model.eval()
    try:
        ids = torch.arange(NUM_TOKENS, device=base.device)[None] * 7 % base.tokenizer.vocab_size
        own = _own_logits(base, ids)
        try:
            hidden = base.hidden(input_ids=ids, use_cache=False).last_hidden_state
            found = base.model.get_output_embeddings()(hidden).float()
        except (AttributeError, TypeError, RuntimeError):
            return True  # it has other parts
        if found.shape != own.shape:
            return True
        difference = (found - own).norm() / own.norm()
        # No number is no difference: the first step tells of it.
        return bool(difference > TOLERANCE.get(hidden.dtype, 1e-4))
    finally:
        base.model.train(was_training)


def _own_logits(base: BaseModel, ids: torch.Tensor) -> torch.Tensor:
    try:
        logits: Any = base.model(input_ids=ids, use_cache=False).logits
        return torch.as_tensor(logits).float()
    except (AttributeError, TypeError) as error:
        raise UserError(
            f"the model {base.name} gives no logits for tokens alone: it cannot be trained here"
        ) from error
