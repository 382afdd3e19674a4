"""The loop: steps of learning, looks at held-out pairs, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from batching import BatchSpec, CheckpointPosition
from query_mutator.base.stored import stored_as
from query_mutator.runs import tags
from query_mutator.runs.checkpoints import Checkpoint, misfit_told
from query_mutator.runs.curves import CurveWriter
from query_mutator.runs.directory import RunDirectory
from query_mutator.tuning.adapter import Trained
from query_mutator.tuning.batches import Batch, Packing, batch_of
from query_mutator.tuning.learning import Learning, Losses
from query_mutator.tuning.material import Material
from query_mutator.tuning.plans import Epoch
from query_mutator.tuning.progress import Progress, Stopping
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.settings import TuningSettings
from query_mutator.tuning.validation import heldout_loss, share_exact

LOOKS_IN_AN_EPOCH = 4
STEPS_BETWEEN_LOOKS = 20
"""Where there are no epochs."""
TORCH_GENERATOR, CUDA_GENERATOR = "random.torch", "random.cuda"


@dataclass
class TuningState:
    """What a run has come to, but for its weights."""

    epoch: int = 0
    batch: int = 0
    """The next one to take of the epoch."""
    step: int = 0
    """Steps of the optimizer that are done."""
    tokens: int = 0
    seconds: float = 0.0
    learning_seconds: float = 0.0
    """Without those spent on looks at held-out pairs."""
    best_loss: float | None = None
    best_step: int = 0
    looks_without_gain: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def position(self) -> CheckpointPosition:
        """Where in the plan it stands."""
        return CheckpointPosition(self.epoch, self.batch, self.step)


class Trainer:
    """Trains one rewriter; what it needs is given to it, made."""

    def __init__(
        self,
        settings: TuningSettings,
        trained: Trained,
        writer: PromptWriter,
        material: Material,
        packing: Packing,
        losses: Losses,
        directory: RunDirectory,
    ) -> None:
        self.settings, self.trained, self.material = settings, trained, material
        self.directory = directory
        self.state = TuningState()
        self.packing = packing
        self._writer, self._losses = writer, losses
        self.num_steps = sum(
            math.ceil(len(epoch.plan) / settings.grad_accumulation) for epoch in material.epochs
        )
        self.learning = Learning(losses, trained.parameters(), settings, self.num_steps)
        self._held = list(self._batches_of(material.validation)) if material.validation else []
        self._curves: dict[str, int] = {}
        per_epoch = self.num_steps / max(1, len(material.epochs))
        usual = round(per_epoch / LOOKS_IN_AN_EPOCH) if self.num_steps else STEPS_BETWEEN_LOOKS
        self._look_every = settings.eval_interval or max(1, usual)

    def train(self, progress: Progress, stopping: Stopping) -> bool:
        """Learns to the end, or until it is stopped; returns whether it got to the end."""
        writer = CurveWriter(
            self.directory.tensorboard, self._curves, first_step=self.state.step + 1
        )
        state, settings = self.state, self.settings
        if self.material.online is not None:
            from query_mutator.tuning.online import OnlineEpochs  # takes an embedding model along

            assert isinstance(self.material.online, OnlineEpochs)
            self.material.online.is_stopped = lambda: stopping.asked
        loss = norm = 0.0
        for batches in self._remaining():
            loss, norm = self._learn(batches)
            tokens = sum(batch.num_tokens for batch in batches)
            state.tokens += tokens
            progress.step(loss, tokens, state.step, self.num_steps)
            state.learning_seconds = progress.learning_seconds
            is_last = state.step == self.num_steps
            if state.step % self._look_every == 0 or is_last:
                self._look(loss, norm, progress, writer)
            state.seconds = progress.seconds
            ended = is_last or self._is_patience_over
            if state.step % settings.save_interval == 0 or ended or stopping.asked:
                self.save()
            if ended:
                return True
            if stopping.asked and self.material.online is None:
                return False
            if stopping.asked:  # what came does not come again: this is the end
                break
        # Nobody knew which step is the last of what came.
        if state.step and not (state.history and state.history[-1]["step"] == state.step):
            self._look(loss, norm, progress, writer)
        self.save()
        return True

    @property
    def is_done(self) -> bool:
        """Whether no step is left; of what comes nobody knows."""
        return 0 < self.num_steps <= self.state.step or self._is_patience_over

    @property
    def _is_patience_over(self) -> bool:
        patience = self.settings.patience
        return bool(patience) and self.state.looks_without_gain >= patience

    def _learn(self, batches: list[Batch]) -> tuple[float, float]:
        self.trained.base.model.train()
        loss, norm = self.learning.step(batches, self.state.step)
        self.state.step += 1
        return loss, norm

    def _look(self, loss: float, norm: float, progress: Progress, curves: CurveWriter) -> None:
        """How it does on held-out pairs; the best weights so far are kept."""
        state, base = self.state, self.trained.base
        look = {
            "step": state.step,
            "loss": loss,
            "gradient_norm": norm,
            "learning_rate": self.learning.rate(state.step - 1),
            "tokens_per_second": progress.tokens_per_second,
        }
        with progress.looking():
            base.model.eval()
            if self._held:
                look["heldout_loss"] = heldout_loss(self._losses, self._held)
            if self.material.validation_pairs:
                pairs = self.material.validation_pairs
                seed = self.settings.seed
                look["exact_rewrites"] = share_exact(base, self._writer, pairs, seed=seed)
            judged = look.get("heldout_loss")
            if judged is None or state.best_loss is None or judged < state.best_loss:
                state.best_loss, state.best_step = judged, state.step
                state.looks_without_gain = 0
                self.trained.save(self.directory.path / self.trained.directory_name)
            else:
                state.looks_without_gain += 1
        state.history.append(look)
        progress.look(look)
        for name, value in look.items():
            if name in LOGGED:
                curves.add_scalar(LOGGED[name], value, state.step)
        self._curves = curves.flush()

    def _remaining(self) -> Iterator[list[Batch]]:
        """The batches of each step that is left."""
        state, together = self.state, self.settings.grad_accumulation
        for epoch in self.material.online or self.material.epochs[state.epoch :]:
            while state.batch < len(epoch.plan):
                first = state.batch
                state.batch = min(first + together, len(epoch.plan))
                yield [self._batch(epoch, epoch.plan[n]) for n in range(first, state.batch)]
            state.epoch, state.batch = state.epoch + 1, 0

    def _batches_of(self, epoch: Epoch) -> Iterator[Batch]:
        return (self._batch(epoch, spec) for spec in epoch.plan)

    def _batch(self, epoch: Epoch, spec: BatchSpec) -> Batch:
        pad_id = self._writer.tokenizer.pad_id
        return batch_of(epoch.samples, spec, pad_id, self.packing, self.material.shared)

    def save(self) -> None:
        """Writes a checkpoint; the last two are kept."""
        tensors = self.learning.tensors()
        tensors[TORCH_GENERATOR] = torch.get_rng_state()
        if self.trained.base.device.type == "cuda":  # whose dropout has a generator of its own
            tensors[CUDA_GENERATOR] = torch.cuda.get_rng_state(self.trained.base.device)
        state = {
            **deepcopy(asdict(self.state)),
            "position": self.state.position.to_dict(),
            "curves": dict(self._curves),
        }
        self.directory.checkpoints.save(self.state.step, Checkpoint(tensors, state))

    def take_up(self) -> None:
        """Goes on from the newest checkpoint that is whole."""
        bytes_of_weights = sum(p.nbytes for p in self.trained.parameters().values())
        checkpoint = self.directory.checkpoints.newest(tensor_bytes=2**20 + 8 * bytes_of_weights)
        with misfit_told(self.directory.path):
            stored = dict(checkpoint.state)
            position = CheckpointPosition.from_dict(stored.pop("position"))
            self._curves = stored_as(dict[str, int], stored.pop("curves"))
            self.state = stored_as(TuningState, stored)
            if self.state.position != position:
                raise ValueError("its position is not that of its counts")
            self.learning.set_tensors(checkpoint.tensors)
            torch.set_rng_state(checkpoint.tensors[TORCH_GENERATOR])
            device, drawing = self.trained.base.device, checkpoint.tensors.get(CUDA_GENERATOR)
            if device.type == "cuda" and drawing is not None:
                torch.cuda.set_rng_state(drawing, device)
        self.directory.checkpoints.tidy(self.state.step)
        self.directory.cut_back(0, self._curves)


LOGGED = {
    "loss": tags.TUNING_LOSS,
    "heldout_loss": tags.TUNING_HELDOUT_LOSS,
    "exact_rewrites": tags.TUNING_EXACT,
    "learning_rate": tags.LEARNING_RATE,
    "gradient_norm": tags.GRADIENT_NORM,
    "tokens_per_second": tags.TUNING_TOKENS_PER_SECOND,
}
"""Under which names the figures of a look are drawn."""
