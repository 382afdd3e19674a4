"""Whether a model keeps the samples of a packed row apart: tried, not believed."""

from __future__ import annotations

from typing import Any

import torch

from query_mutator.tuning.attention import SampleLayout, sample_by_sample
from query_mutator.tuning.base_model import BaseModel
from query_mutator.tuning.batches import Packing

KINDS_OF_ATTENTION = {"full_attention", "sliding_attention", "chunked_attention", "attention"}
STATEFUL = ("mamba", "ssm", "rwkv", "recurrent", "deltanet", "retention", "shortconv", "rglru")
"""What the classes of layers that carry a state have in their names."""
LENGTHS = (7, 5)
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.05}


def packing_of(base: BaseModel) -> Packing:
    """The quickest way in which the model keeps packed samples apart."""
    if carries_state(base.model):
        return Packing.NONE
    for packing in (Packing.BY_SAMPLE, Packing.BY_POSITION):
        if _keeps_apart(base, packing):
            return packing
    return Packing.NONE


def carries_state(model: torch.nn.Module) -> bool:
    """Whether a layer of it goes on from token to token, over the borders of samples."""
    config: Any = getattr(model, "config", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    return bool(kinds - KINDS_OF_ATTENTION) or any(
        isinstance(module, torch.nn.Conv1d | torch.nn.RNNBase)
        or any(word in type(module).__name__.lower() for word in STATEFUL)
        for module in model.modules()
    )


@torch.no_grad()
def _keeps_apart(base: BaseModel, packing: Packing) -> bool:
    """Whether two samples in a row come out as they do alone."""
    was_training = base.model.training
    base.model.eval()
    try:
        ids = torch.arange(sum(LENGTHS), device=base.device)[None] * 7 % base.tokenizer.vocab_size
        positions = torch.cat([torch.arange(length) for length in LENGTHS])[None].to(base.device)
        alone = [
            base.hidden(input_ids=part, use_cache=False).last_hidden_state
            for part in ids.split(LENGTHS, dim=1)
        ]
        given: dict[str, Any] = {"input_ids": ids, "position_ids": positions, "use_cache": False}
        if packing is Packing.BY_SAMPLE:
            with sample_by_sample(base.model):
                layout = SampleLayout.of(LENGTHS).to(base.device)
                found = base.hidden(**given, layout=layout).last_hidden_state
        else:
            found = base.hidden(**given).last_hidden_state
        expected = torch.cat(alone, dim=1).float()
        difference = (found.float() - expected).norm() / expected.norm()
        return bool(difference < TOLERANCE.get(found.dtype, 1e-3))
    except (TypeError, NotImplementedError, ValueError, KeyError, RuntimeError):
        return False  # it takes no positions, or no attention but its own
    finally:
        base.model.train(was_training)
