"""Plans on disk: `meta.json` and an `epoch_N.jsonl` for each epoch, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from batching.core import BatchSpec, OverflowCounts
from batching.core.table import table_of
from batching.planning.epochs import VERSION, EpochPlan, PlanMeta, PlanParts
from batching.planning.places import replaced, written_whole
from batching.planning.sharding import ShardCounts
from query_mutator.base.errors import UserError
from query_mutator.base.files import sync
from query_mutator.base.untrusted import DEEPEST, MOST_BYTES, parse_json, read_lines, read_text

META = "meta.json"


def save_plan(plan: PlanParts, path: Path) -> None:
    """Writes a plan as a directory, in the place of a plan that may be there."""
    with written_whole(path.absolute(), _is_plan, "plan") as directory:
        _fill(directory, plan)


def load_plan(path: Path) -> PlanParts:
    """The plan in a directory; `UserError` says what is wrong with it and what to do."""
    path = path.absolute()
    for place in (path, path.parent):  # a plan, or the shards that it is one of
        if not place.exists() and replaced(place).exists():
            raise UserError(
                f"writing {place} was interrupted; what was there before is whole.\n"
                f"Take it back: mv '{replaced(place)}' '{place}'"
            )
    stored = read_text(path / META, "plan")
    try:
        plan = _plan(path, parse_json(stored, deepest=DEEPEST))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise UserError(
            f"plan {path} is damaged: {error if str(error) else type(error).__name__}.\n"
            "Build it again: python -m batching plan build"
        ) from error
    return plan


def save_parts(parts: Iterable[PlanParts], path: Path) -> list[Path]:
    """Writes each part as `rank_N/`, all or none; returns where they are."""
    path = path.absolute()
    names = []
    with written_whole(path, _are_shards, "directory of shards") as directory:
        for rank, part in enumerate(parts):
            names.append(f"rank_{rank}")
            (directory / names[-1]).mkdir()
            _fill(directory / names[-1], part)
    return [path / name for name in names]


def epoch_file(epoch: int) -> str:
    """The name of the file that holds an epoch."""
    return f"epoch_{epoch}.jsonl"


def _is_plan(path: Path) -> bool:
    """A plan, or an empty directory: never anything else that a user may have there."""
    if path.is_symlink() or not path.is_dir():
        return False
    names = {entry.name for entry in path.iterdir()}
    return not names or (META in names and all(n == META or n.startswith("epoch_") for n in names))


def _are_shards(path: Path) -> bool:
    """Plans of ranks and nothing else, or an empty directory."""
    if path.is_symlink() or not path.is_dir():
        return False
    return all(one.name.startswith("rank_") and _is_plan(one) for one in path.iterdir())


def _fill(directory: Path, plan: PlanParts) -> None:
    for epoch in plan.epochs:
        _write(directory / epoch_file(epoch.epoch), map(_line, epoch))
    summaries = [epoch.summary() for epoch in plan.epochs]
    meta = {"fingerprint": plan.fingerprint, **plan.meta.to_dict(), "epochs": summaries}
    _write(directory / META, [json.dumps(meta, indent=2) + "\n"])
    sync(directory)


def _write(path: Path, lines: Iterator[str] | list[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def _line(batch: BatchSpec) -> str:
    starts, lengths = zip(*batch.spans, strict=True)
    row: dict[str, Any] = {
        "sample_ids": batch.sample_ids,
        "bucket_id": batch.bucket_id,
        "max_length": batch.max_length,
        "token_count": batch.token_count,
        "lengths": lengths,
    }
    if any(starts):
        row["starts"] = starts
    if len(batch.rows) < len(batch.sample_ids):
        row["rows"] = batch.rows
    line = json.dumps(row, separators=(",", ":")) + "\n"
    if len(line) > MOST_BYTES:  # it could not be read again
        raise UserError(
            f"a batch of {len(batch.sample_ids):,} samples takes more than {MOST_BYTES / 1e6:.0f} "
            "MB to write down.\nLower the token budget, or shorten the ids."
        )
    return line


def _plan(path: Path, stored: Any) -> PlanParts:
    if not isinstance(stored, dict):
        raise ValueError(f"{META} holds no object")
    if stored.get("version") != VERSION:
        raise ValueError(f"its version is {stored.get('version')!r}, and {VERSION} is known")
    fingerprint, summaries = stored.pop("fingerprint"), stored.pop("epochs")
    meta = PlanMeta.from_dict(stored)
    batches: list[BatchSpec] = []
    ends: list[int] = [0]
    for number in range(len(summaries)):
        batches += _batches(path / epoch_file(number))
        ends.append(len(batches))
    # One table of all epochs, so that they share their ids.
    table, ids = table_of(batches)
    if (table.token_counts > meta.config.token_budget).any():
        raise ValueError("a batch is over the token budget")
    epochs = []
    for number, summary in enumerate(summaries):
        epoch = EpochPlan(
            number,
            table.take(range(ends[number], ends[number + 1])),
            ids,
            OverflowCounts(**summary["counts"]),
            ShardCounts(**summary["shard_counts"]),
            is_shard=meta.shard is not None,
        )
        if epoch.summary() != summary:
            raise ValueError(f"{epoch_file(number)} does not hold what {META} says")
        epochs.append(epoch)
    plan = PlanParts(meta, tuple(epochs))
    if plan.fingerprint != fingerprint:
        raise ValueError(f"{META} was changed: it does not match its fingerprint")
    return plan


def _batches(path: Path) -> Iterator[BatchSpec]:
    for number, line in enumerate(read_lines(path, "plan"), start=1):
        try:
            # A batch has as many values as it has samples: the bound of a line is bound enough.
            yield _batch(parse_json(line, deepest=DEEPEST, most_values=MOST_BYTES))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"line {number} of {path.name} is no batch: {error}") from error


def _batch(row: dict[str, Any]) -> BatchSpec:
    names, lengths = row["sample_ids"], row["lengths"]
    starts = row.get("starts") or [0] * len(names)
    rows = row.get("rows") or [1] * len(names)
    bucket_id, max_length, token_count = row["bucket_id"], row["max_length"], row["token_count"]
    numbers = [bucket_id, max_length, token_count, *lengths, *starts, *rows]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("a number is negative or none")
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError("an id is no text")
    return BatchSpec(
        tuple(names),
        bucket_id,
        max_length,
        token_count,
        spans=tuple(zip(starts, lengths, strict=True)),
        rows=tuple(rows),
    )
