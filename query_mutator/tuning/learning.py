"""One step of learning: the loss of batches, its gradients, and the optimizer's step."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from query_mutator.runs.checkpoints import tensor_like
from query_mutator.tuning.attention import sample_by_sample
from query_mutator.tuning.base_model import BaseModel
from query_mutator.tuning.batches import Batch
from query_mutator.tuning.own_logits import changes_logits
from query_mutator.tuning.settings import CONSTANT, LINEAR, TuningSettings

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What AdamW keeps of each weight."""
STEPS_RISING = 10
"""Where nobody knows how many steps there will be."""


class Losses:
    """The loss of batches under a model."""

    def __init__(self, base: BaseModel, compute_dtype: torch.dtype) -> None:
        self._base = base
        self._dtype = compute_dtype
        self._asks_the_model = changes_logits(base)
        parameters = inspect.signature(base.model.forward).parameters
        self._can_choose = "logits_to_keep" in parameters
        """Whether the model makes the logits of some places alone."""

    def total(self, batch: Batch) -> torch.Tensor:
        """The losses of all tokens that count, each times its weight, added up.

        To be called within `apart`.
        """
        batch = batch.to(self._base.device)
        given: dict[str, Any] = {"input_ids": batch.input_ids, "use_cache": False}
        if batch.attention_mask is not None:
            given["attention_mask"] = batch.attention_mask
        else:
            given["position_ids"] = batch.position_ids
        if batch.layout is not None:
            given["layout"] = batch.layout
        with self._autocast():
            logits = self._logits(given, batch.predicting)
        losses = cross_entropy(logits.float(), batch.targets, reduction="none")
        return (losses * batch.weights).sum()

    def _logits(self, given: dict[str, Any], places: torch.Tensor) -> torch.Tensor:
        """Those of the given places, counted through all rows: the last matrix is the widest."""
        if not self._asks_the_model:
            hidden = self._base.hidden(**given).last_hidden_state
            asked = hidden.reshape(-1, hidden.shape[-1]).index_select(0, places)
            found: torch.Tensor = self._base.model.get_output_embeddings()(asked)
            return found
        width = given["input_ids"].shape[1]
        rows, columns = places // width, places % width
        if self._can_choose and len(places):
            kept, columns = columns.unique(return_inverse=True)
            given = given | {"logits_to_keep": kept}
        found = self._base.model(**given).logits
        return found[rows, columns]

    def apart(self, batch: Batch) -> AbstractContextManager[None]:
        """While it lasts, the model keeps the samples of the batch apart.

        Gradients belong within it too: gradient checkpointing computes layers again.
        """
        return (
            contextlib.nullcontext() if batch.layout is None else sample_by_sample(self._base.model)
        )

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._dtype is torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self._base.device.type, dtype=self._dtype)


class Learning:
    """AdamW, with a learning rate that rises and falls."""

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
        self._optimizer = torch.optim.AdamW(
            parameters.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    def step(self, batches: Sequence[Batch], number: int) -> tuple[float, float]:
        """Learns from batches as if they were one; returns their loss and the gradient's norm.

        `FloatingPointError` where the loss is no number any more.
        """
        counted = sum(batch.counted for batch in batches)
        self._optimizer.zero_grad()
        loss = 0.0
        for batch in batches:
            with self._losses.apart(batch):
                part = self._losses.total(batch) / max(counted, 1e-9)
                part.backward()
            loss += part.item()
        norm = torch.nn.utils.clip_grad_norm_(
            list(self._parameters.values()), self._settings.max_grad_norm
        ).item()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise FloatingPointError(f"the loss is {loss} at step {number + 1}")
        for group in self._optimizer.param_groups:
            group["lr"] = self.rate(number)
        self._optimizer.step()
        return loss, norm

    def rate(self, number: int) -> float:
        """The learning rate of a step, counted from 0; constant where no number of steps is set."""
        settings, last = self._settings, self._num_steps
        rising = round(settings.warmup * last) if last else STEPS_RISING
        if number < rising:
            return settings.learning_rate * (number + 1) / (rising + 1)
        if settings.schedule == CONSTANT or not last:
            return settings.learning_rate
        left = 1 - (number - rising) / max(1, last - rising)
        if settings.schedule == LINEAR:
            return settings.learning_rate * left
        return settings.learning_rate * (1 - math.cos(math.pi * left)) / 2

    def tensors(self) -> dict[str, torch.Tensor]:
        """Copies of the weights, and of what the optimizer keeps of them."""
        found = {}
        for name, parameter in self._parameters.items():
            found[f"weights.{name}"] = parameter.detach().cpu().clone()
            for moment, value in self._optimizer.state.get(parameter, {}).items():
                found[f"{moment}.{name}"] = value.detach().cpu().clone()
        return found

    def set_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Goes on from what `tensors` gave; `ValueError` where they do not fit."""
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(tensor_like(tensors, f"weights.{name}", parameter))
                # Before the first step there are none.
                if any(f"{moment}.{name}" in tensors for moment in MOMENTS):
                    self._optimizer.state[parameter] = {
                        "step": tensor_like(tensors, f"step.{name}", torch.tensor(0.0)),
                        **{
                            moment: tensor_like(tensors, f"{moment}.{name}", parameter).to(
                                parameter.device
                            )
                            for moment in MOMENTS[1:]
                        },
                    }
