"""One step of learning: the loss of batches, its gradients, and the optimizer's step."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from query_mutator.tuning.base_model import BaseModel
from query_mutator.tuning.batches import Batch
from query_mutator.tuning.settings import CONSTANT, LINEAR, TuningSettings


class Losses:
    """The loss of batches under a model."""

    def __init__(self, base: BaseModel, compute_dtype: torch.dtype) -> None:
        self._base = base
        self._dtype = compute_dtype
        self.device = next(base.model.parameters()).device

    def total(self, batch: Batch) -> torch.Tensor:
        """The losses of all tokens that count, each times its weight, added up."""
        batch = batch.to(self.device)
        layout: dict[str, Any] = {} if batch.layout is None else {"layout": batch.layout}
        with self._autocast():
            hidden = self._base.hidden(
                input_ids=batch.input_ids,
                position_ids=batch.position_ids,
                attention_mask=batch.attention_mask,
                use_cache=False,
                **layout,
            ).last_hidden_state
            # The widest matrix of all: only where the next token counts.
            asked = hidden.reshape(-1, hidden.shape[-1])[batch.predicting]
            logits = self._base.model.get_output_embeddings()(asked)
        losses = cross_entropy(logits.float(), batch.targets, reduction="none")
        return (losses * batch.weights).sum()

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._dtype is torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self._dtype)


class Learning:
    """AdamW with a learning rate that rises and falls."""

    def __init__(
        self,
        losses: Losses,
        parameters: dict[str, torch.nn.Parameter],
        settings: TuningSettings,
        num_steps: int,
    ) -> None:
        self._losses = losses
        self._parameters = parameters
        self._settings = settings
        self._num_steps = num_steps
        self.optimizer = torch.optim.AdamW(
            parameters.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    def step(self, batches: Sequence[Batch], number: int) -> tuple[float, float]:
        """Learns from batches, as if they were one; returns their loss and the gradient's norm.

        `FloatingPointError` where the loss is no number any more.
        """
        counted = sum(float(batch.weights.sum()) for batch in batches)
        self.optimizer.zero_grad()
        loss = 0.0
        for batch in batches:
            part = self._losses.total(batch) / max(counted, 1e-9)
            part.backward()
            loss += part.item()
        norm = torch.nn.utils.clip_grad_norm_(
            list(self._parameters.values()), self._settings.max_grad_norm
        ).item()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise FloatingPointError(f"the loss diverged at step {number + 1}: a lower --lr helps")
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(number)
        self.optimizer.step()
        return loss, norm

    def rate(self, number: int) -> float:
        """The learning rate of a step, counted from 0."""
        settings, last = self._settings, self._num_steps
        rising = round(settings.warmup * last)
        if number < rising:
            return settings.learning_rate * (number + 1) / (rising + 1)
        done = (number - rising) / max(1, last - rising)
        if settings.schedule == CONSTANT:
            return settings.learning_rate
        if settings.schedule == LINEAR:
            return settings.learning_rate * (1 - done)
        return settings.learning_rate * (1 + math.cos(math.pi * min(1.0, done))) / 2


