"""Packed, padded or one by one: the same samples give the same loss and the same gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from batching import BatchPlanBuilder, BatchSpec, Sample
from query_mutator.tuning.apart import packing_of
from query_mutator.tuning.base_model import BaseModel, load_base_model
from query_mutator.tuning.batches import Batch, Packing, batch_of, shared_beginning
from query_mutator.tuning.learning import Losses
from query_mutator.tuning.plans import batching_config, planned
from query_mutator.tuning.prompts import WEIGHT
from query_mutator.tuning.settings import settings_of
from tests.tiny_models import make_llama, make_model, make_tokenizer

BEGINNING = (5, 6, 7, 8)
PAD = 0


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    return load_base_model(str(make_llama(tmp_path_factory.mktemp("llama"))), torch.float32)


def sample(number: int, length: int, learned: int = 3, weight: float = 1.0) -> Sample:
    generator = torch.Generator().manual_seed(number)
    own = torch.randint(10, 250, (length,), generator=generator).tolist()
    mask = (0,) * (len(BEGINNING) + length - learned) + (1,) * learned
    meta = {"sample_id": str(number), WEIGHT: weight}
    return Sample((*BEGINNING, *own), mask, meta=meta)


SAMPLES = [
    sample(number, length, weight=1 + number % 3)
    for number, length in enumerate((4, 30, 9, 40, 17, 5, 8, 21))
]
BY_ID = {one.sample_id: one for one in SAMPLES}


def batches(packing: Packing, *flags: str, shared: int = 0) -> list[Batch]:
    values: dict[str, Any] = {"token_budget": "512", "pack_max_len": "96"}
    values |= dict(flag.split("=") for flag in flags)
    plan = planned(SAMPLES, batching_config(settings_of(values), packing), epoch=0)
    return [batch_of(BY_ID, spec, PAD, packing, shared) for spec in plan]


def loss_and_gradients(
    model: BaseModel, found: list[Batch]
) -> tuple[float, dict[str, torch.Tensor]]:
    model.model.zero_grad()
    losses = Losses(model, torch.float32)
    loss = 0.0
    for batch in found:
        with losses.apart(batch):
            total = losses.total(batch)
            total.backward()
            loss += total.item()
    gradients = {
        name: parameter.grad.clone()
        for name, parameter in model.model.named_parameters()
        if parameter.grad is not None
    }
    return loss, gradients


def one_by_one() -> list[Batch]:
    specs = [
        BatchSpec((one.sample_id,), 0, len(one), len(one), ((0, len(one)),)) for one in SAMPLES
    ]
    return [batch_of(BY_ID, spec, PAD, Packing.NONE) for spec in specs]


@pytest.mark.parametrize(
    ("packing", "flags", "shared"),
    [
        (Packing.BY_SAMPLE, [], 0),
        (Packing.BY_SAMPLE, [], len(BEGINNING)),
        (Packing.BY_SAMPLE, ["pack_max_len=512"], len(BEGINNING)),
        (Packing.BY_POSITION, [], 0),
        (Packing.NONE, [], 0),
        (Packing.BY_SAMPLE, ["bucket_edges=16,32"], 0),
    ],
    ids=["by sample", "beginning shared", "one row", "by position", "padded", "buckets"],
)
def test_batches_give_the_loss_and_gradients_of_samples_alone(
    llama: BaseModel, packing: Packing, flags: list[str], shared: int
) -> None:
    expected_loss, expected = loss_and_gradients(llama, one_by_one())
    made = batches(packing, *flags, shared=shared)
    loss, gradients = loss_and_gradients(llama, made)
    assert len(made) < len(SAMPLES)
    assert loss == pytest.approx(expected_loss, rel=1e-4)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        assert (gradient - expected[name]).norm() < 1e-4 * expected[name].norm(), name


def test_a_sample_longer_than_a_row_keeps_its_first_tokens_and_packs_on(llama: BaseModel) -> None:
    long = sample(99, 60, learned=50)
    by_id = {**BY_ID, long.sample_id: long}
    settings = settings_of({"token_budget": "48", "pack_max_len": "48"})
    config = batching_config(settings, Packing.BY_SAMPLE)
    plan = planned(list(by_id.values()), config, epoch=0)
    assert plan.counts.truncated == 1
    made = [batch_of(by_id, spec, PAD, Packing.BY_SAMPLE, len(BEGINNING)) for spec in plan]
    alone = {name: one for name, one in by_id.items() if name != long.sample_id}
    cut = Sample(long.input_ids[:48], long.loss_mask[:48], meta=dict(long.meta))
    alone[long.sample_id] = cut
    specs = [
        BatchSpec((name,), 0, len(one), len(one), ((0, len(one)),)) for name, one in alone.items()
    ]
    expected, _ = loss_and_gradients(
        llama, [batch_of(alone, spec, PAD, Packing.NONE) for spec in specs]
    )
    loss, _ = loss_and_gradients(llama, made)
    assert loss == pytest.approx(expected, rel=1e-4)


def test_padding_and_prompts_never_count(llama: BaseModel) -> None:
    made = batches(Packing.NONE)
    assert sum(len(batch.targets) for batch in made) == sum(one.num_loss_tokens for one in SAMPLES)
    learned = sorted(t for one in SAMPLES for t in one.input_ids[-one.num_loss_tokens :])
    assert sorted(t for batch in made for t in batch.targets.tolist()) == learned


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {}),
        ("granite", {"logits_scaling": 8.0}),
        ("cohere", {"logit_scale": 0.0625}),
        ("gemma2", {"final_logit_softcapping": 0.05}),
    ],
)
@pytest.mark.parametrize("is_padded", [True, False], ids=["padded", "packed"])
def test_the_loss_is_that_of_the_models_own_logits(
    tmp_path: Path, kind: str, changes: dict[str, Any], is_padded: bool
) -> None:
    model = load_base_model(str(make_model(tmp_path, kind, **changes)), torch.float32)
    expected = 0.0
    for one in SAMPLES:
        ids = torch.tensor([one.input_ids])
        labels = ids.masked_fill(torch.tensor([one.loss_mask]) == 0, -100)
        with torch.no_grad():
            mean = model.model.eval()(input_ids=ids, labels=labels).loss.item()
        expected += mean * one.num_loss_tokens * one.meta[WEIGHT]
    packing = Packing.NONE if is_padded else packing_of(model)
    loss, _ = loss_and_gradients(model, batches(packing, shared=len(BEGINNING)))
    assert loss == pytest.approx(expected, rel=1e-4)


def test_a_weight_multiplies_the_loss_of_its_sample(llama: BaseModel) -> None:
    once, _ = loss_and_gradients(llama, [_alone(sample(1, 12, weight=1.0))])
    thrice, _ = loss_and_gradients(llama, [_alone(sample(1, 12, weight=3.0))])
    assert thrice == pytest.approx(3 * once)


def _alone(one: Sample) -> Batch:
    spec = BatchSpec((one.sample_id,), 0, len(one), len(one), ((0, len(one)),))
    return batch_of({one.sample_id: one}, spec, PAD, Packing.NONE)


def test_the_beginning_that_is_shared_ends_where_samples_differ_or_are_learned() -> None:
    assert shared_beginning(SAMPLES) == len(BEGINNING)
    assert shared_beginning([*SAMPLES, Sample((5, 6, 1, 2), (0, 0, 1, 1))]) == 1
    assert shared_beginning([Sample((5, 6, 7), (1, 1, 1))] * 2) == 0
    assert shared_beginning([]) == 0


def test_the_packing_that_a_model_takes_is_found_by_trying(llama: BaseModel) -> None:
    assert packing_of(llama) is Packing.BY_SAMPLE


def test_a_model_with_a_state_is_not_packed(tmp_path: Path) -> None:
    from transformers import MambaConfig, MambaForCausalLM

    tokenizer = make_tokenizer(tmp_path)
    config = MambaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, state_size=4
    )
    MambaForCausalLM(config).save_pretrained(tmp_path)
    mamba = load_base_model(str(tmp_path), torch.float32)
    assert packing_of(mamba) is Packing.NONE


def test_flags_decide_what_the_trainer_sees() -> None:
    packed = batches(Packing.BY_SAMPLE)
    padded = batches(Packing.BY_SAMPLE, "bucket_edges=16,32", "token_budget=128")
    assert all(batch.layout is not None for batch in packed)
    assert all(batch.layout is None and batch.attention_mask is not None for batch in padded)
    assert max(batch.input_ids.numel() for batch in padded) <= 128
    assert len(batches(Packing.BY_SAMPLE, "pack_max_len=96")) <= len(padded)


def test_a_plan_of_ones_own_is_followed_batch_by_batch() -> None:
    config = batching_config(settings_of({"token_budget": "128"}), Packing.NONE)
    lengths = {one.sample_id: len(one) for one in SAMPLES}
    plan = BatchPlanBuilder(lengths, config).build(num_epochs=1).epoch(0)
    made = [batch_of(BY_ID, spec, PAD, Packing.NONE) for spec in plan]
    assert [batch.num_tokens for batch in made] == [
        sum(len(BY_ID[name]) for name in spec.sample_ids) for spec in plan
    ]
