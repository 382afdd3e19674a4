"""A user's texts, or what a run has learned, as samples to train on.

JSONL, CSV and Parquet rows hold `text`; `prompt` and `completion`; `instruction` and `response`
(with an `input`, if they like, and `output` for the response: Alpaca's names); or (JSONL, Parquet)
a chat in `messages`; and an `id` if they like. In a TXT every line is a text. Of a run, the
rewrites that raised the score are taken: the question is the prompt, its rewrite the completion.

`encode_texts(read_texts(path), tokenizer)` gives tokens with a loss mask, 0 on what is only read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batching.core import Sample
from batching.generation.chats import LEARNED_ROLE, Part, Turn, chat_ml
from batching.generation.rows import WHAT, read_rows
from batching.generation.tokenizers import ByteTokenizer, Tokenizer
from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import open_file
from query_mutator.runs.directory import CONFIG, TRANSITIONS

if TYPE_CHECKING:
    from query_mutator.operators import Operator

TEXTS_AT_ONCE = 1024
BLOCK_BYTES = 1 << 20
HASH_CHARACTERS = 16
KEYS_SHOWN = 10
LONGEST_SHOWN = 200


@dataclass(frozen=True)
class TextSample:
    """A text to train on, under the name by which caches and plans know it."""

    sample_id: str
    parts: tuple[Part, ...]
    ends: bool = True
    """Whether the tokenizer's last token is learned after it; a chat has ends of its own."""
    turns: tuple[Turn, ...] = ()
    """Of a chat: a tokenizer with a chat template writes these, in place of `parts`."""

    def written_for(self, tokenizer: Tokenizer) -> TextSample:
        """The text in the form that the tokenizer's own model knows; `UserError` names it."""
        if not self.turns or tokenizer.chat is None:
            return self
        try:
            parts, ends = tokenizer.chat.parts(self.turns)
        except UserError as error:
            raise UserError(f"sample {self.sample_id}: {error}") from error
        return replace(self, parts=parts, ends=ends)


def read_texts(path: str | Path) -> Iterator[TextSample]:
    """The texts of a JSONL, CSV, Parquet or TXT file, or of a run (its directory or its log).

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
    from query_mutator.operators import load_operators
    from query_mutator.runs.directory import RunDirectory
    from query_mutator.runs.task import load_run

    return load_run(RunDirectory(run))[1] if (run / CONFIG).is_file() else load_operators()


def encode_texts(texts: Iterable[TextSample], tokenizer: Tokenizer) -> Iterator[Sample]:
    """The texts as samples; what is only read is left out of the loss."""
    remaining = iter(texts)
    while block := [text.written_for(tokenizer) for text in islice(remaining, TEXTS_AT_ONCE)]:
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
    for place, row in read_rows(path):
        try:
            yield place, _text_sample(place.replace(" ", "-"), row)
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


def _text_sample(name: str, row: Any) -> TextSample:
    """The text of a row; `name` is its own where the row has none."""
    if not isinstance(row, dict):
        raise ValueError("not an object with text, prompt and completion, or messages")
    row = {key: value for key, value in row.items() if value is not None}
    own_name = row.get("id", "")
    if isinstance(own_name, bool) or not isinstance(own_name, str | int):
        raise ValueError("'id' is neither text nor a whole number")
    name = name if own_name == "" else str(own_name)
    if "messages" in row:
        turns = _turns(row["messages"])
        return TextSample(name, chat_ml(turns), ends=False, turns=turns)
    if "completion" in row:
        prompt = Part(_text(row, "prompt", may_be_empty=True), learned=False)
        return TextSample(name, (prompt, Part(_text(row, "completion"))))
    if "instruction" in row and (answer := _first_of(row, "response", "output")):
        return _instructed(name, row, _text(row, answer))
    if "text" in row:
        return TextSample(name, (Part(_text(row, "text")),))
    found = ", ".join(map(str, list(row)[:KEYS_SHOWN]))[:LONGEST_SHOWN] or "nothing"
    raise ValueError(
        "no 'text', no 'completion', no 'instruction' with a 'response' and no 'messages' "
        f"(it has: {found})"
    )


def _instructed(name: str, row: dict[str, Any], response: str) -> TextSample:
    """An instruction, with what it is about if that stands apart, and the response to it."""
    asked = [_text(row, "instruction"), _text(row, "input", may_be_empty=True)]
    instruction = "\n\n".join(filter(None, asked))
    parts = (Part(f"{instruction}\n", learned=False), Part(response))
    return TextSample(name, parts, turns=(Turn("user", instruction), Turn(LEARNED_ROLE, response)))


def _turns(messages: Any) -> tuple[Turn, ...]:
    """A chat's turns; only what the assistant says, and that it ends, is learned."""
    if not isinstance(messages, list) or not messages:
        raise ValueError("'messages' is not a list of messages")
    turns = []
    for message in messages:
        if not isinstance(message, dict):
            raise ValueError("a message is not an object with role and content")
        role, content = _text(message, "role"), _text(message, "content", may_be_empty=True)
        if not role.replace("-", "_").isidentifier():
            raise ValueError("'role' is not a word")  # it stands where a template sets its marks
        turns.append(Turn(role, content))
    if not any(turn.role == LEARNED_ROLE for turn in turns):
        raise ValueError(f"no message is of the role '{LEARNED_ROLE}': nothing can be learned")
    return tuple(turns)


def _first_of(row: dict[str, Any], *keys: str) -> str | None:
    return next((key for key in keys if key in row), None)


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
