"""A user's texts, or what a run has learned, as samples to train on.

JSONL and CSV rows hold `text`, or `prompt` and `completion`, or (JSONL) a chat in `messages`, and
an `id` if they like. In a TXT every line is a text. Of a run, the rewrites that raised the score
are taken: the question is the prompt, its rewrite the completion.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batching.core import Sample
from batching.generation.tokenizers import ByteTokenizer, Tokenizer
from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import DEEPEST, MOST_BYTES, open_file, parse_json, read_lines
from query_mutator.runs.directory import CONFIG, TRANSITIONS

if TYPE_CHECKING:
    from query_mutator.operators import Operator

WHAT = "the data set"
TURN_BEGINS, TURN_ENDS = "<|im_start|>", "<|im_end|>"
"""The marks of a chat (ChatML): tokens where the tokenizer has them, and else plain text."""
LEARNED_ROLE = "assistant"
TEXTS_AT_ONCE = 1024
BLOCK_BYTES = 1 << 20
HASH_CHARACTERS = 16
KEYS_SHOWN = 10
LONGEST_SHOWN = 200


@dataclass(frozen=True)
class Part:
    """A piece of a text: whether it is learned, or only read, and whether it is one mark."""

    text: str
    learned: bool = True
    is_mark: bool = False


@dataclass(frozen=True)
class TextSample:
    """A text to train on, under the name by which caches and plans know it."""

    sample_id: str
    parts: tuple[Part, ...]
    ends: bool = True
    """Whether the tokenizer's last token is learned after it; a chat has ends of its own."""


def read_texts(path: str | Path) -> Iterator[TextSample]:
    """The texts of a JSONL, CSV or TXT file, or of a run (its directory or its transitions).

    `UserError` names the line of a row that cannot be used.
    """
    path = Path(path)
    known: set[str] = set()
    for place, text in _texts(path):
        if text.sample_id in known:
            raise UserError(f"{path}, {place}: id {text.sample_id!r} is already taken by another")
        if not all(_is_text(part.text) for part in text.parts):
            raise UserError(f"{path}, {place}: it holds characters that are not text")
        known.add(text.sample_id)
        yield text
    if not known:
        what = "steps that raised a score" if _is_run(path) else "texts"
        raise UserError(f"{path} holds no {what}")


def dataset_hash(path: str | Path) -> str:
    """A digest of the data set's file: it changes with its content.

    That of a run is of its operators too, which are in the prompts.
    """
    path = Path(path)
    files = [path]
    if _is_run(path):
        run = path if path.is_dir() else path.parent
        files = [run / TRANSITIONS, *(name for name in (run / CONFIG,) if name.is_file())]
    digest = hashlib.sha256()
    for name in files:
        with open_file(name, WHAT) as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
    return digest.hexdigest()[:HASH_CHARACTERS]


def run_operators(run: Path) -> Sequence[Operator]:
    """Those that a run was trained with; the shipped ones where it does not say."""
    from query_mutator.operators import shipped_operators
    from query_mutator.runs.directory import RunDirectory
    from query_mutator.runs.task import load_run

    return load_run(RunDirectory(run))[1] if (run / CONFIG).is_file() else shipped_operators()


def encode_texts(texts: Iterable[TextSample], tokenizer: Tokenizer) -> Iterator[Sample]:
    """The texts as samples; what is only read is left out of the loss."""
    remaining = iter(texts)
    while block := list(islice(remaining, TEXTS_AT_ONCE)):
        plain = [part.text for text in block for part in text.parts if not part.is_mark]
        encoded = iter(tokenizer.encode_many(plain))
        for text in block:
            input_ids: list[int] = []
            loss_mask: list[int] = []
            for part in text.parts:
                ids = _mark(part.text, tokenizer) if part.is_mark else next(encoded)
                input_ids += ids
                loss_mask += [int(part.learned)] * len(ids)
            if text.ends and tokenizer.eos_id is not None:
                input_ids.append(tokenizer.eos_id)
                loss_mask.append(1)
            yield Sample(tuple(input_ids), tuple(loss_mask), meta={"sample_id": text.sample_id})


def measure_texts(texts: Iterable[TextSample], tokenizer: Tokenizer) -> Iterator[tuple[str, int]]:
    """The id and the length of each sample: what a `LengthCache` takes."""
    for sample in encode_texts(texts, tokenizer):
        yield sample.sample_id, len(sample)


def _mark(text: str, tokenizer: Tokenizer) -> list[int]:
    token = tokenizer.token_id(text)
    return [token] if token is not None else tokenizer.encode(text)


def _is_run(path: Path) -> bool:
    return path.is_dir() or path.name == TRANSITIONS


def _texts(path: Path) -> Iterator[tuple[str, TextSample]]:
    """Each text, with where it stands."""
    if _is_run(path):
        yield from _rewrites(path if path.is_dir() else path.parent)
        return
    readers = {".jsonl": _json_rows, ".csv": _csv_rows, ".txt": _lines}
    if path.suffix.lower() not in readers:
        raise UserError(f"{WHAT} {path} is neither .jsonl, .csv or .txt, nor the folder of a run")
    for number, row in readers[path.suffix.lower()](path):
        place = f"line {number}"
        try:
            yield place, _text_sample(number, row)
        except ValueError as error:
            raise UserError(f"{path}, {place}: {error}") from error


def _rewrites(run: Path) -> Iterator[tuple[str, TextSample]]:
    """The rewrites of a run that raised the score, in the words that its stream has for them."""
    from batching.streaming.trajectories import TransitionLogStream  # takes torch along

    for sample in TransitionLogStream(run, run_operators(run), ByteTokenizer()):
        if sample.reward is not None and sample.reward > 0:
            prompt = Part(sample.meta["prompt"], learned=False)
            completion = Part(sample.meta["completion"])
            yield f"step {sample.sample_id}", TextSample(sample.sample_id, (prompt, completion))


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(_decoded_lines(path), 1):
        if line.strip():
            yield number, {"text": line.rstrip("\r\n")}


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(_decoded_lines(path), 1):
        if line.strip():
            try:
                yield number, parse_json(line, deepest=DEEPEST)
            except json.JSONDecodeError:
                raise UserError(f"{path}, line {number}: not valid JSON") from None
            except ValueError as error:
                raise UserError(f"{path}, line {number}: {error}") from error


def _csv_rows(path: Path) -> Iterator[tuple[int, Any]]:
    # The module's own bound, 131,072 characters, is below what a text may have.
    csv.field_size_limit(MOST_BYTES)
    reader = csv.DictReader(_decoded_lines(path), strict=True)
    try:
        for row in reader:
            yield reader.line_num, {key: value for key, value in row.items() if key and value}
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not valid CSV: {error}") from error


def _decoded_lines(path: Path) -> Iterator[str]:
    for number, line in enumerate(read_lines(path, WHAT), 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}, line {number}: not UTF-8 text: {error.reason}") from error


def _text_sample(number: int, row: Any) -> TextSample:
    if not isinstance(row, dict):
        raise ValueError("not an object with text, prompt and completion, or messages")
    row = {key: value for key, value in row.items() if value is not None}
    name = row.get("id")
    if name is None or name == "":
        name = f"line-{number}"
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise ValueError("'id' is neither text nor a whole number")
    if "messages" in row:
        return TextSample(str(name), _chat(row["messages"]), ends=False)
    if "completion" in row:
        prompt = Part(_text(row, "prompt", may_be_empty=True), learned=False)
        return TextSample(str(name), (prompt, Part(_text(row, "completion"))))
    if "text" in row:
        return TextSample(str(name), (Part(_text(row, "text")),))
    found = ", ".join(list(row)[:KEYS_SHOWN])[:LONGEST_SHOWN] or "nothing"
    raise ValueError(f"no 'text', no 'completion' and no 'messages' (it has: {found})")


def _chat(messages: Any) -> tuple[Part, ...]:
    """A chat's turns; only what the assistant says, and that it ends, is learned."""
    if not isinstance(messages, list) or not messages:
        raise ValueError("'messages' is not a list of messages")
    parts: list[Part] = []
    for message in messages:
        if not isinstance(message, dict):
            raise ValueError("a message is not an object with role and content")
        role, content = _text(message, "role"), _text(message, "content", may_be_empty=True)
        learned = role == LEARNED_ROLE
        parts += [
            Part(TURN_BEGINS, learned=False, is_mark=True),
            Part(f"{role}\n", learned=False),
            Part(content, learned=learned),
            Part(TURN_ENDS, learned=learned, is_mark=True),
            Part("\n", learned=False),
        ]
    if not any(part.learned for part in parts):
        raise ValueError(f"no message is of the role '{LEARNED_ROLE}': nothing can be learned")
    return tuple(parts)


def _text(row: dict[str, Any], key: str, *, may_be_empty: bool = False) -> str:
    value = row.get(key)
    if value is None:
        value = ""
    if not isinstance(value, str):
        raise ValueError(f"'{key}' is not text")
    if not value and not may_be_empty:
        raise ValueError(f"'{key}' is empty")
    return value


def _is_text(text: str) -> bool:
    """Whether it has no halves of characters, which no tokenizer reads."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
