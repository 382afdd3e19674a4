"""The tokenizer inside a GGUF file, as a fast one where its kind is known."""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batching.generation.chats import ChatTemplate
from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import open_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

MAGIC = b"GGUF"
PREFIX = "tokenizer.ggml."
TEMPLATE = "tokenizer.chat_template"
MOST_KEYS = 10_000
MOST_ITEMS = 4_000_000
LONGEST_TEXT = 1 << 20
SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
TEXT, ARRAY = 8, 9
CONTROL, USER_DEFINED = 3, 4
"""Kinds of tokens: the first are never read from a text, the others always are."""

WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Llama 3 and Qwen 2 cut a text into words; they differ in the digits of a number."""


@dataclass(frozen=True)
class GgufVocabulary:
    """What a GGUF says of its tokenizer."""

    model: str
    """`gpt2` for byte-level BPE; others are left to llama.cpp."""
    pre: str
    """How a text is cut into words."""
    tokens: tuple[str, ...]
    kinds: tuple[int, ...]
    merges: tuple[str, ...]
    eos_id: int | None
    pad_id: int | None
    digest: str
    chat: ChatTemplate | None = None

    @classmethod
    def read(cls, path: Path) -> GgufVocabulary:
        """The vocabulary of a file; `UserError` for one that is damaged or has none."""
        try:
            values = _metadata(path)
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise UserError(f"{path} is a damaged GGUF file: {error}") from error
        tokens = _texts(values.get("tokens"))
        if not tokens:
            raise UserError(f"{path} holds no tokenizer; name the GGUF of a language model")
        kinds = values.get("token_type")
        template = values.pop(TEMPLATE, None)
        canonical = json.dumps(values, sort_keys=True).encode()
        return cls(
            model=str(values.get("model", "")),
            pre=str(values.get("pre", "")),
            tokens=tokens,
            kinds=tuple(kinds) if isinstance(kinds, list) else (1,) * len(tokens),
            merges=_texts(values.get("merges")),
            eos_id=_token_id(values.get("eos_token_id"), len(tokens)),
            pad_id=_token_id(values.get("padding_token_id"), len(tokens)),
            digest=hashlib.sha256(canonical).hexdigest(),
            chat=_chat(template, values, tokens),
        )

    def byte_pair_encoding(self) -> Tokenizer | None:
        """A tokenizer that gives what llama.cpp gives; None where the kind is not known here."""
        cut = _word_cutter(self.pre) if self.model == "gpt2" else None
        if cut is None or len(self.kinds) != len(self.tokens):
            return None
        from tokenizers import AddedToken, Tokenizer
        from tokenizers.models import BPE

        merges = [tuple(merge.split(" ", 1)) for merge in self.merges]
        vocabulary = {token: number for number, token in enumerate(self.tokens)}
        try:
            model = BPE(vocabulary, merges, ignore_merges=self.pre == "llama-bpe")  # type: ignore[arg-type]
        except Exception as error:  # what the Rust library raises has no narrower type
            raise UserError(f"the tokenizer in the GGUF does not work: {error}") from error
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = cut
        for kind, add in (
            (CONTROL, tokenizer.add_special_tokens),
            (USER_DEFINED, tokenizer.add_tokens),
        ):
            named = [t for t, k in zip(self.tokens, self.kinds, strict=True) if k == kind]
            add([AddedToken(token, normalized=False, special=kind == CONTROL) for token in named])
        return tokenizer


def is_gguf(path: Path) -> bool:
    """Whether a file begins as a GGUF does."""
    with open_file(path, "the tokenizer") as file:
        return file.read(len(MAGIC)) == MAGIC


def _word_cutter(pre: str) -> PreTokenizer | None:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    if pre == "gpt-2":
        return ByteLevel(add_prefix_space=False)
    if pre == "smollm":
        return Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    if pre in ("llama-bpe", "qwen2"):
        words = WORDS.format(digits="{1,3}" if pre == "llama-bpe" else "")
        letters = ByteLevel(add_prefix_space=False, use_regex=False)
        return Sequence([Split(Regex(words), "isolated"), letters])
    return None


def _metadata(path: Path) -> dict[str, Any]:
    """All values whose names begin with `PREFIX`, by what follows it; and the chat template."""
    with open_file(path, "the tokenizer") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise ValueError("it is empty") from error
    with content:
        reader = _Reader(content)
        magic, version, _, keys = reader.unpack("<4sIQQ")
        if magic != MAGIC or version not in (2, 3):
            raise ValueError(f"version {version} is not known")
        if keys > MOST_KEYS:
            raise ValueError(f"{keys} keys")
        values = {}
        for _ in range(keys):
            key = reader.text()
            value = reader.value(*reader.unpack("<I"))
            if key.startswith(PREFIX) or key == TEMPLATE:
                values[key.removeprefix(PREFIX)] = value
        return values


class _Reader:
    """Reads one value after the other; `struct.error` or `ValueError` where there is none."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._at = 0

    def unpack(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._content, self._at)
        self._at += struct.calcsize(form)
        return values

    def text(self) -> str:
        (size,) = self.unpack("<Q")
        data = self._content[self._at : self._at + size] if size <= LONGEST_TEXT else b""
        if len(data) != size:
            raise ValueError("it ends too soon, or a text in it is too long")
        self._at += size
        return data.decode("utf-8", "surrogateescape")

    def value(self, kind: int) -> Any:
        if kind == TEXT:
            return self.text()
        if kind in SCALARS:
            return self.unpack("<" + SCALARS[kind])[0]
        if kind != ARRAY:
            raise ValueError(f"a value of unknown kind {kind}")
        inner, count = self.unpack("<IQ")
        if count > MOST_ITEMS:
            raise ValueError(f"a list of {count} values")
        if inner in SCALARS:
            return list(self.unpack(f"<{count}{SCALARS[inner]}"))
        if inner != TEXT:
            raise ValueError(f"a list of unknown kind {inner}")
        return [self.text() for _ in range(count)]


def _texts(value: Any) -> tuple[str, ...]:
    is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return tuple(value) if is_texts else ()


def _chat(source: Any, values: dict[str, Any], tokens: tuple[str, ...]) -> ChatTemplate | None:
    if not isinstance(source, str) or not source:
        return None
    kinds = values.get("token_type")
    kinds = kinds if isinstance(kinds, list) else []
    begins, ends = (
        _token_id(values.get(f"{name}_token_id"), len(tokens)) for name in ("bos", "eos")
    )
    return ChatTemplate(
        source,
        marks=tuple(token for token, kind in zip(tokens, kinds, strict=False) if kind == CONTROL),
        bos_token="" if begins is None else tokens[begins],
        eos_token="" if ends is None else tokens[ends],
    )


def _token_id(value: Any, size: int) -> int | None:
    return value if type(value) is int and 0 <= value < size else None
