"""How many tokens of samples are learned from in a second? Beside padded batches and TRL's trainer.

All train a LoRA adapter of the same rank on the same pairs with the same model, in the same run,
and in turn. What counts are tokens of samples, padding apart. Seconds of the processor are given
too: on a machine that does other work, they are what can be compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from batching import BatchSpec, Sample
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, as_main, leave
from query_mutator.base.weights import EMBEDDED
from query_mutator.tuning.adapter import Trained
from query_mutator.tuning.apart import packing_of
from query_mutator.tuning.base_model import load_base_model, quiet_transformers
from query_mutator.tuning.batches import Batch, Packing, batch_of, shared_beginning
from query_mutator.tuning.learning import Learning, Losses
from query_mutator.tuning.pairs import shipped_pairs
from query_mutator.tuning.plans import batching_config, planned
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.settings import TuningSettings, settings_of

ROWS = 32
"""Of the batches of fixed size, as many as a packed batch of 2048 tokens holds."""


@dataclass(frozen=True)
class Measured:
    """What some training took."""

    name: str
    tokens: int
    seconds: float
    processor_seconds: float

    def line(self) -> str:
        """A row of the table."""
        return (
            f"| {self.name} | {self.tokens / self.seconds:.0f} "
            f"| {self.tokens / self.processor_seconds:.0f} |"
        )


def ours(samples: Sequence[Sample], settings: TuningSettings, *, pack: bool) -> Measured:
    """Our own loop, packed or with batches of so many rows each."""
    dtype = torch.bfloat16
    base = load_base_model(settings.model, dtype)
    packing = packing_of(base) if pack else Packing.NONE
    by_id = {sample.sample_id: sample for sample in samples}
    if pack:
        specs = list(planned(samples, batching_config(settings, packing), 0))
    else:
        longest = max(map(len, samples))
        specs = [
            _fixed(samples[first : first + ROWS], longest) for first in range(0, len(samples), ROWS)
        ]
    shared = shared_beginning(samples)
    batches = [batch_of(by_id, spec, base.tokenizer.pad_id, packing, shared) for spec in specs]
    trained = Trained(base, settings)
    learning = Learning(Losses(base, dtype), trained.parameters(), settings, len(batches))
    base.model.train()
    name = "ours, packed" if pack else f"ours, {ROWS} rows padded to the longest sample"
    return _timed(name, batches, partial(_learn, learning))


def trl(samples: Sequence[Sample], settings: TuningSettings) -> Measured:
    """TRL's trainer with its packing."""
    import datasets
    import peft
    import trl as library

    base = load_base_model(settings.model, torch.bfloat16)
    config = peft.LoraConfig(
        r=settings.lora_rank, lora_alpha=settings.lora_alpha, target_modules="all-linear",
        task_type="CAUSAL_LM",
    )  # fmt: skip
    rows = [
        {"input_ids": list(sample.input_ids), "completion_mask": list(sample.loss_mask)}
        for sample in samples
    ]
    import transformers

    from query_mutator.tuning.base_model import place_of

    place = place_of(settings.model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place.source, **place.options)
    with tempfile.TemporaryDirectory() as folder, quiet_transformers():
        trainer = library.SFTTrainer(
            model=base.model,
            args=library.SFTConfig(
                output_dir=folder,
                packing=True,
                max_length=2048,
                per_device_train_batch_size=1,
                num_train_epochs=1,
                learning_rate=settings.learning_rate,
                completion_only_loss=True,
                bf16=True,
                use_cpu=True,
                gradient_checkpointing=False,
                save_strategy="no",
                report_to=[],
                logging_strategy="no",
                disable_tqdm=True,
                dataset_kwargs={"skip_prepare_dataset": False},
            ),
            train_dataset=datasets.Dataset.from_list(rows),
            processing_class=tokenizer,
            peft_config=config,
        )
        began, processor = time.perf_counter(), time.process_time()
        trainer.train()
        return Measured(
            "TRL's SFTTrainer, packed",
            sum(map(len, samples)),
            time.perf_counter() - began,
            time.process_time() - processor,
        )


def _fixed(samples: Sequence[Sample], width: int) -> BatchSpec:
    return BatchSpec(
        tuple(sample.sample_id for sample in samples),
        0,
        width,
        len(samples) * width,
        tuple((0, len(sample)) for sample in samples),
    )


def _learn(learning: Learning, batch: Batch, number: int) -> None:
    learning.step([batch], number)


def _timed(name: str, batches: Sequence[Batch], learn: Callable[[Batch, int], Any]) -> Measured:
    began, processor = time.perf_counter(), time.process_time()
    for number, batch in enumerate(batches):
        learn(batch, number)
    return Measured(
        name,
        sum(batch.num_tokens for batch in batches),
        time.perf_counter() - began,
        time.process_time() - processor,
    )


def run(argv: Sequence[str] | None = None) -> int:
    """Prints a table; returns the exit code."""
    parser = OneLineParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("--pairs", type=at_least(1), default=256, help="how many (default 256)")
    parser.add_argument("--model", default=EMBEDDED, help="what is trained (default embedded)")
    args: argparse.Namespace = parser.parse_args(argv)
    settings = settings_of({"model": args.model})
    writer = PromptWriter(load_base_model(args.model, torch.bfloat16).tokenizer)
    samples = writer.samples(shipped_pairs()[: args.pairs])
    print(
        f"{len(samples)} pairs, {sum(map(len, samples))} tokens, {torch.get_num_threads()} threads"
    )
    print("| | tokens a second | a second of the processor |\n| --- | --- | --- |")
    for measure in (
        partial(ours, samples, settings, pack=True),
        partial(trl, samples, settings),
        partial(ours, samples, settings, pack=False),
    ):
        print(measure().line(), flush=True)
    return 0


main = as_main(run)

if __name__ == "__main__":
    leave(main())
