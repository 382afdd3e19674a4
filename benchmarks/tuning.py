"""How many tokens of samples are learned from in a second? Beside padded batches and TRL's trainer.

    python -m benchmarks.tuning
    python -m benchmarks.tuning --pairs 32 --rounds 1   # whether it works

All train a LoRA adapter of the same rank on the same linear layers of the same model, on the same
pairs, with the same kinds of numbers. Each learns a step to warm up; then they take turns, round
after round. Their clock runs from samples that are tokens to the last step: batches are made within
it. Ours are planned within it too, while TRL packs before, when its trainer is made. What counts
are the tokens of samples, each once: no padding, and a beginning that samples share is counted for
each of them, though packed rows of ours hold it once.

Seconds of the processor stand beside those of the clock: on a machine that does other work, they
are what can be compared.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import torch

from batching import BatchSpec, Sample
from query_mutator.base.flags import at_least
from query_mutator.base.tables import as_markdown
from query_mutator.base.terminal import OneLineParser, as_main, counted, leave
from query_mutator.base.weights import EMBEDDED
from query_mutator.tuning.adapter import Trained
from query_mutator.tuning.apart import packing_of
from query_mutator.tuning.base_model import (
    compute_dtype,
    load_base_model,
    place_of,
    quiet_transformers,
)
from query_mutator.tuning.batches import Packing, batch_of, shared_beginning
from query_mutator.tuning.learning import Learning, Losses
from query_mutator.tuning.pairs import shipped_pairs
from query_mutator.tuning.plans import batching_config, planned
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.settings import CHOICES, TuningSettings, settings_of

ROWS = 32
"""Of the batches of fixed size, as many as a packed batch of 2048 tokens holds."""
HEAD = (
    "", "tokens a second", "tokens a second of the processor",
    "packed / this", "packed / this, by the processor",
)  # fmt: skip


@dataclass(frozen=True)
class Took:
    """What one pass over all samples took."""

    seconds: float
    processor_seconds: float


class Contender(Protocol):
    """One way to train, with a model of its own that is loaded and has its adapter."""

    name: str

    @property
    def model(self) -> torch.nn.Module:
        """What is trained."""

    def warm_up(self) -> None:
        """Learns one step."""

    def learn(self) -> None:
        """Makes its batches and learns from all samples once."""


class Ours:
    """Our own loop, packed or with batches of so many rows each."""

    def __init__(
        self, samples: Sequence[Sample], settings: TuningSettings, *, pack: bool = True
    ) -> None:
        self.name = "ours, packed" if pack else f"ours, {ROWS} rows padded to the longest sample"
        self._samples, self._settings = samples, settings
        self._dtype = compute_dtype(settings)
        self._base = load_base_model(settings.model, self._dtype)
        self._packing = packing_of(self._base) if pack else Packing.NONE
        self._is_packed = pack
        self._trained = Trained(self._base, settings)
        self._base.model.train()

    @property
    def model(self) -> torch.nn.Module:
        model: torch.nn.Module = self._base.model
        return model

    def warm_up(self) -> None:
        self._steps(self._plan()[:1])

    def learn(self) -> None:
        self._steps(self._plan())

    def _plan(self) -> list[BatchSpec]:
        if self._is_packed:
            return list(planned(self._samples, batching_config(self._settings, self._packing), 0))
        longest = max(map(len, self._samples))
        parts = range(0, len(self._samples), ROWS)
        return [_fixed(self._samples[first : first + ROWS], longest) for first in parts]

    def _steps(self, plan: Sequence[BatchSpec]) -> None:
        by_id = {sample.sample_id: sample for sample in self._samples}
        shared = shared_beginning(self._samples)
        losses = Losses(self._base, self._dtype)
        learning = Learning(losses, self._trained.parameters(), self._settings, len(plan))
        for number, spec in enumerate(plan):
            pad_id = self._base.tokenizer.pad_id
            learning.step([batch_of(by_id, spec, pad_id, self._packing, shared)], number)


class Trl:
    """TRL's trainer with its packing, as it is by default."""

    def __init__(self, samples: Sequence[Sample], settings: TuningSettings, folder: str) -> None:
        import datasets
        import peft
        import transformers
        import trl

        datasets.disable_progress_bars()
        self.name = "TRL's SFTTrainer, packed"
        dtype = compute_dtype(settings)
        place = place_of(settings.model)
        rows = [
            {"input_ids": list(sample.input_ids), "completion_mask": list(sample.loss_mask)}
            for sample in samples
        ]
        config: Any = trl.SFTConfig(
            output_dir=folder,
            packing=True,
            max_length=settings.pack_max_len,
            per_device_train_batch_size=1,
            num_train_epochs=1,
            learning_rate=settings.learning_rate,
            completion_only_loss=True,
            bf16=dtype is torch.bfloat16,
            use_cpu=not torch.cuda.is_available(),
            gradient_checkpointing=settings.gradient_checkpointing,
            save_strategy="no",
            report_to=[],
            logging_strategy="no",
            disable_tqdm=True,
        )
        self._trainer: Any = trl.SFTTrainer(
            model=load_base_model(settings.model, dtype).model,
            args=config,
            train_dataset=datasets.Dataset.from_list(rows),
            processing_class=transformers.AutoTokenizer.from_pretrained(
                place.source, **place.options
            ),
            peft_config=peft.LoraConfig(
                r=settings.lora_rank,
                lora_alpha=settings.lora_alpha,
                lora_dropout=settings.lora_dropout,
                target_modules="all-linear",
                task_type="CAUSAL_LM",
            ),
        )
        self._trainer.remove_callback(transformers.PrinterCallback)
        packed = sum(len(row["input_ids"]) for row in self._trainer.train_dataset)
        if packed != sum(map(len, samples)):
            raise AssertionError(f"TRL packed {packed} tokens of {sum(map(len, samples))}")

    @property
    def model(self) -> torch.nn.Module:
        model: torch.nn.Module = self._trainer.model
        return model

    def warm_up(self) -> None:
        self._trainer.args.max_steps = 1
        self._trainer.train()
        self._trainer.args.max_steps = -1

    def learn(self) -> None:
        self._trainer.train()


def take_turns(contenders: Sequence[Contender], rounds: int) -> list[list[Took]]:
    """What each took in each round, after a step to warm up."""
    for contender in contenders:
        contender.warm_up()
    found: list[list[Took]] = [[] for _ in contenders]
    for _ in range(rounds):
        for took, contender in zip(found, contenders, strict=True):
            began, processor = time.perf_counter(), time.process_time()
            contender.learn()
            took.append(Took(time.perf_counter() - began, time.process_time() - processor))
    return found


def table(names: Sequence[str], found: Sequence[Sequence[Took]], tokens: int) -> str:
    """A row for each: the median over the rounds, and the range.

    The first is compared with each of the others, round by round.
    """
    rows: list[tuple[str, ...]] = [HEAD]
    first = found[0]
    for name, took in zip(names, found, strict=True):
        pairs = list(zip(first, took, strict=True))
        rows.append(
            (
                name,
                _told([tokens / one.seconds for one in took], 0),
                _told([tokens / one.processor_seconds for one in took], 0),
                _told([one.seconds / ours.seconds for ours, one in pairs], 2),
                _told([one.processor_seconds / ours.processor_seconds for ours, one in pairs], 2),
            )
        )
    return as_markdown(rows)


def _told(values: Sequence[float], digits: int) -> str:
    median = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return median
    return f"{median} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def _fixed(samples: Sequence[Sample], width: int) -> BatchSpec:
    return BatchSpec(
        tuple(sample.sample_id for sample in samples),
        0,
        width,
        len(samples) * width,
        tuple((0, len(sample)) for sample in samples),
    )


@contextlib.contextmanager
def _contenders(samples: Sequence[Sample], settings: TuningSettings) -> Iterator[list[Contender]]:
    with tempfile.TemporaryDirectory() as folder, quiet_transformers():
        chosen: list[Contender] = [Ours(samples, settings)]
        if find_spec("trl") and find_spec("datasets"):
            chosen.append(Trl(samples, settings, folder))
        else:
            print("TRL's SFTTrainer: not compared, trl is not installed (make dev)")
        chosen.append(Ours(samples, settings, pack=False))
        yield chosen


def trained_weights(model: torch.nn.Module) -> dict[str, tuple[torch.Size, torch.dtype]]:
    """The shape and the kind of number of every weight that is trained, by name."""
    return {
        name.removeprefix("base_model.model."): (weight.shape, weight.dtype)
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }


def run(argv: Sequence[str] | None = None) -> int:
    """Prints a table; returns the exit code."""
    parser = OneLineParser(
        prog="python -m benchmarks.tuning",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--pairs", type=at_least(1), default=256, help="how many (default 256)")
    add("--rounds", type=at_least(1), default=3, help="how often each is timed (default 3)")
    add("--model", default=EMBEDDED, help="what is trained (default embedded)")
    add("--dtype", choices=CHOICES["dtype"], default="auto", help="as of train-mutator")
    args = parser.parse_args(argv)
    settings = settings_of({"model": args.model, "dtype": args.dtype})
    dtype = compute_dtype(settings)
    writer = PromptWriter(load_base_model(args.model, dtype).tokenizer)
    samples = writer.samples(shipped_pairs()[: args.pairs])
    tokens = sum(map(len, samples))
    with _contenders(samples, settings) as contenders:
        trained = [trained_weights(contender.model) for contender in contenders]
        if any(weights != trained[0] for weights in trained):
            raise AssertionError("the contenders do not train the same weights")
        print(
            f"{counted(len(samples), 'pair')}, {counted(tokens, 'token')}, "
            f"{counted(args.rounds, 'round')}, {counted(torch.get_num_threads(), 'thread')}; "
            f"the model and its products in {_name(dtype)}, the adapters in "
            f"{' and '.join(sorted({_name(kind) for _, kind in trained[0].values()}))}",
            flush=True,
        )
        found = take_turns(contenders, args.rounds)
        print(table([contender.name for contender in contenders], found, tokens))
    return 0


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


main = as_main(run)

if __name__ == "__main__":
    leave(main())
