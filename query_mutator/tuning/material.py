"""What is learned from, epoch by epoch, and what is kept to validate with."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from random import Random

from batching import BatchingConfig, Sample
from batching.generation.dataset import encode_texts, read_texts
from query_mutator.base.errors import UserError
from query_mutator.tuning.batches import Packing, shared_beginning
from query_mutator.tuning.pair_files import read_pairs, written_pairs
from query_mutator.tuning.pairs import (
    Pair,
    as_asked,
    generated_pairs,
    shipped_pairs,
    split_pairs,
    with_kept,
)
from query_mutator.tuning.plans import Epoch, batching_config, check_learnable, planned, stored_plan
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.settings import TuningSettings

logger = logging.getLogger(__name__)

DIGEST_CHARACTERS = 16
EPOCH_SEEDS = 1000
"""Apart, so that no epoch of a run has the seed of one of the next run's."""


@dataclass(frozen=True)
class Material:
    """All that a run learns from."""

    epochs: list[Epoch]
    validation: Epoch | None
    validation_pairs: list[Pair] = field(default_factory=list)
    shared: int = 0
    """Tokens that all samples begin with alike."""
    num_pairs: int = 0
    online: Iterator[Epoch] | None = None
    """In place of `epochs`: small ones, as samples come."""

    @property
    def num_batches(self) -> int:
        """In all epochs."""
        return sum(len(epoch.plan) for epoch in self.epochs)

    @property
    def num_held_out(self) -> int:
        """Samples to validate with."""
        return len(self.validation.samples) if self.validation else 0

    def digest(self) -> str:
        """Changes with any sample, any weight and any batch."""
        digest = hashlib.sha256()
        for epoch in (*self.epochs, *([self.validation] if self.validation else [])):
            for name, sample in epoch.samples.items():
                weight = sample.meta.get("weight", 1.0)
                digest.update(f"{name!r} {sample.input_ids} {sample.loss_mask} {weight}".encode())
            digest.update(epoch.plan.digest.encode())
        return digest.hexdigest()[:DIGEST_CHARACTERS]


def load_material(settings: TuningSettings, writer: PromptWriter, packing: Packing) -> Material:
    """What the settings name, checked; `UserError` where nothing can be learned from it."""
    if settings.online:
        return _of_what_comes(settings, writer, packing)
    if settings.data is not None:
        return _of_data(settings, settings.data, writer, packing)
    if settings.batchplan is not None:
        raise UserError("--batchplan is a plan for --data FILE: give both")
    return _of_pairs(settings, _pairs(settings), writer, batching_config(settings, packing))


def _pairs(settings: TuningSettings) -> list[Pair]:
    """Those of the user's files and runs, or the shipped ones."""
    pairs: list[Pair] = []
    for file in settings.pairs:
        pairs += read_pairs(file)
    if settings.from_:
        from query_mutator.tuning.run_pairs import pairs_of_runs  # takes an embedding model along

        pairs += pairs_of_runs(settings.from_)
    return pairs or [*shipped_pairs(), *written_pairs()]


def _of_pairs(
    settings: TuningSettings, pairs: list[Pair], writer: PromptWriter, config: BatchingConfig
) -> Material:
    random = Random(settings.seed)
    training, held = split_pairs(pairs, settings.validation_share, random)
    if not training:
        raise UserError("there are no pairs to train on: all are held out (--validation-share)")
    made: list[dict[str, Sample]] = []
    for epoch in range(settings.epochs):
        seed = settings.seed * EPOCH_SEEDS + epoch
        more = generated_pairs(training, settings.generated, seed) if settings.generated else []
        shown = with_kept([*training, *more], settings.keep_clear, Random(seed))
        made.append(_by_id(writer.samples(as_asked(shown, settings.as_typed, Random(seed)))))
    held = as_asked(held, settings.as_typed, Random(settings.seed))
    held_samples = writer.samples(held)
    return Material(
        [
            Epoch(samples, planned(list(samples.values()), config, epoch))
            for epoch, samples in enumerate(made)
        ],
        _validation(held_samples, config),
        held,
        shared_beginning(chain(*(samples.values() for samples in made), held_samples)),
        len(training),
    )


def _of_data(
    settings: TuningSettings, file: str, writer: PromptWriter, packing: Packing
) -> Material:
    """A user's own data set, as it is."""
    samples = list(encode_texts(read_texts(file), writer.tokenizer))
    learned = [sample for sample in samples if sample.num_loss_tokens]
    if not learned:
        raise UserError(f"{file} has nothing to learn: no token of it counts in the loss")
    held: list[Sample] = []
    if settings.batchplan is None:
        learned, held = _split(learned, settings)
    by_id = _by_id(samples if settings.batchplan else learned)
    config = batching_config(settings, packing)
    if settings.batchplan is not None:
        lengths = {sample.sample_id: len(sample) for sample in samples}
        plan = stored_plan(settings.batchplan, packing, lengths, settings.model)
        check_learnable(by_id, plan.epoch(0), settings.batchplan)
        plans = list(plan.epochs)[: settings.epochs]
        if len(plans) < settings.epochs:
            logger.warning(
                "%s has %d epochs, and that many are trained (--epochs %d)",
                settings.batchplan, len(plans), settings.epochs,
            )  # fmt: skip
    else:
        plans = [planned(learned, config, epoch) for epoch in range(settings.epochs)]
    return Material(
        [Epoch(by_id, plan) for plan in plans],
        _validation(held, config),
        shared=shared_beginning((*by_id.values(), *held)),
        num_pairs=len(by_id),
    )


def _split(samples: list[Sample], settings: TuningSettings) -> tuple[list[Sample], list[Sample]]:
    """Those to train on and those to validate with; the same tokens are never on both sides."""
    first_with: dict[tuple[int, ...], str] = {}
    for sample in samples:
        first_with.setdefault(tuple(sample.input_ids), sample.sample_id)
    names = sorted(first_with.values())
    random = Random(settings.seed)
    chosen = set(random.sample(names, round(settings.validation_share * len(names))))
    is_held = [first_with[tuple(sample.input_ids)] in chosen for sample in samples]
    sides = list(zip(samples, is_held, strict=True))
    return [one for one, held in sides if not held], [one for one, held in sides if held]


def _of_what_comes(settings: TuningSettings, writer: PromptWriter, packing: Packing) -> Material:
    """A run that is going or a puzzle server, after the samples of `--data` if there are any."""
    from query_mutator.tuning.online import check_puzzle_server, online_epochs

    if not settings.from_:
        check_puzzle_server(settings, writer)
    known: list[Sample] = []
    validation: Epoch | None = None
    if settings.data is not None:
        offline = _of_data(replace(settings, epochs=1), settings.data, writer, packing)
        known, validation = list(offline.epochs[0].samples.values()), offline.validation
    config = batching_config(settings, packing)
    return Material(
        [],
        validation,
        num_pairs=len(known),
        online=online_epochs(settings, known, writer, config),
    )


def _validation(samples: list[Sample], config: BatchingConfig) -> Epoch | None:
    return Epoch(_by_id(samples), planned(samples, config, 0)) if samples else None


def _by_id(samples: Iterable[Sample]) -> dict[str, Sample]:
    return {sample.sample_id: sample for sample in samples}
