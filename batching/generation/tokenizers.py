"""Tokenizers by name: `bytes`, `embedded`, a `tokenizer.json`, a GGUF, or a name on the hub."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from batching.generation.chats import ChatTemplate
from batching.generation.gguf import GgufVocabulary, is_gguf
from batching.generation.llama_tokens import LlamaTokens
from query_mutator.base.errors import UserError
from query_mutator.base.hub import hub_files, is_hub_name
from query_mutator.base.untrusted import DEEPEST, parse_json, read_text
from query_mutator.base.weights import EMBEDDED, gguf_path

if TYPE_CHECKING:
    import tokenizers

logger = logging.getLogger(__name__)

BYTES = "bytes"
FILE = "tokenizer.json"
CONFIG = "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"
HASH_CHARACTERS = 16
USUAL_ENDS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>", "<eos>", "[SEP]")
"""Which token ends a text, where nothing beside a `tokenizer.json` says it; the first known one."""


class Tokenizer(Protocol):
    """Turns texts into token ids.

    Special tokens are never read from a text, so that no text can end itself or play another role;
    `token_id` gives them to those who may set them.
    """

    name: str
    tokenizer_hash: str
    """The same for the same tokenizer, wherever it was loaded from."""
    vocab_size: int
    eos_id: int | None
    pad_id: int
    chat: ChatTemplate | None
    """How its model writes chats; None where nobody says."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without any that begin or end it."""

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text: the quick way for many."""

    def token_id(self, token: str) -> int | None:
        """The id of a token by its name; None where there is none."""


class ByteTokenizer:
    """One token for each byte of UTF-8, one to pad and one to end: needs nothing.

    >>> ByteTokenizer().encode("aé")
    [97, 195, 169]
    """

    name = BYTES
    tokenizer_hash = hashlib.sha256(b"bytes, pad 256, eos 257").hexdigest()[:HASH_CHARACTERS]
    vocab_size = 258
    pad_id = 256
    eos_id: int | None = 257
    chat: ChatTemplate | None = None

    def encode(self, text: str) -> list[int]:
        """The bytes of the text."""
        return list(text.encode("utf-8", "surrogatepass"))

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The bytes of each text."""
        return [self.encode(text) for text in texts]

    def token_id(self, token: str) -> int | None:
        """None: no byte has a name."""
        return None


class FastTokenizer:
    """A tokenizer of the `tokenizers` library."""

    def __init__(
        self,
        name: str,
        tokenizer: tokenizers.Tokenizer,
        *,
        digest: str,
        eos_id: int | None,
        pad_id: int | None,
        chat: ChatTemplate | None = None,
    ) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # read them as the text that they are
        self._tokenizer = tokenizer
        self.name = name
        self.vocab_size = tokenizer.get_vocab_size()
        self.eos_id = eos_id
        self.pad_id = _first(pad_id, eos_id, 0)
        self.chat = chat
        self.tokenizer_hash = _short_hash(digest, eos_id, chat)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, on all cores."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [one.ids for one in encoded]

    def token_id(self, token: str) -> int | None:
        """The id of a token by its name; None where there is none."""
        found: int | None = self._tokenizer.token_to_id(token)
        return found


class LlamaTokenizer(LlamaTokens):
    """The tokenizer of a GGUF of which only llama.cpp knows how it works."""

    def __init__(self, name: str, path: Path, vocabulary: GgufVocabulary) -> None:
        super().__init__(path)
        self._ids = {token: number for number, token in enumerate(vocabulary.tokens)}
        self.name = name
        self.vocab_size = len(vocabulary.tokens)
        self.eos_id = vocabulary.eos_id
        self.pad_id = _first(vocabulary.pad_id, vocabulary.eos_id, 0)
        self.chat = vocabulary.chat
        self.tokenizer_hash = _short_hash(vocabulary.digest, vocabulary.eos_id, self.chat)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self.encode_many([text])[0]

    def token_id(self, token: str) -> int | None:
        """The id of a token by its name; None where there is none."""
        return self._ids.get(token)


def load_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name or path; `UserError` where there is none.

    `bytes` needs nothing, `embedded` is that of the shipped model; else the path of a
    `tokenizer.json`, of a directory that holds one, or of a GGUF; or, where there is no such path,
    a name on the Hugging Face hub, which is asked for what the local cache does not hold.
    """
    if name == BYTES:
        return ByteTokenizer()
    if name == EMBEDDED:
        return _from_gguf(name, gguf_path())
    path = Path(name)
    if not path.exists():
        path = _from_hub(name)
    if path.is_dir():
        if not (path / FILE).is_file():
            raise UserError(f"no tokenizer in {path}: it holds no {FILE}")
        path = path / FILE
    return _from_gguf(name, path) if is_gguf(path) else _from_file(name, path)


def _from_hub(name: str) -> Path:
    why = ""
    if is_hub_name(name) and not name.endswith((".json", ".gguf")):
        try:
            return hub_files(name, (FILE, CONFIG, TEMPLATE))
        except UserError as error:
            why = f"{error}; "
    raise UserError(
        f"no tokenizer {name!r}: {why}name `{BYTES}`, `{EMBEDDED}`, the path of a {FILE}, of a "
        "directory with one, or of a GGUF, or a model on the hub"
    )


def _from_gguf(name: str, path: Path) -> Tokenizer:
    vocabulary = GgufVocabulary.read(path)
    tokenizer = vocabulary.byte_pair_encoding()
    if tokenizer is None:
        kind = f"{vocabulary.model} {vocabulary.pre}".strip()
        logger.warning("%s: a tokenizer of kind %s is left to llama.cpp, which is slow", name, kind)
        return LlamaTokenizer(name, path, vocabulary)
    return FastTokenizer(
        name,
        tokenizer,
        digest=vocabulary.digest,
        eos_id=vocabulary.eos_id,
        pad_id=vocabulary.pad_id,
        chat=vocabulary.chat,
    )


def _from_file(name: str, path: Path) -> Tokenizer:
    import tokenizers

    text = read_text(path, "the tokenizer")
    try:
        tokenizer = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # what the Rust library raises has no narrower type
        raise UserError(f"{path} is not a {FILE} of Hugging Face: {error}") from error
    config = _config(path.with_name(CONFIG))
    chat = _chat_template(path.with_name(TEMPLATE), config, tokenizer)
    ends = [_content(config.get("eos_token")), *USUAL_ENDS]
    return FastTokenizer(
        name,
        tokenizer,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        eos_id=next(
            (found for end in ends if (found := tokenizer.token_to_id(end)) is not None), None
        ),
        pad_id=tokenizer.token_to_id(_content(config.get("pad_token"))),
        chat=chat,
    )


def _chat_template(
    path: Path, config: dict[str, Any], tokenizer: tokenizers.Tokenizer
) -> ChatTemplate | None:
    """That in a file of its own, or the one in the tokenizer's settings that is the default."""
    source = config.get("chat_template")
    if isinstance(source, list):
        named = [one for one in source if isinstance(one, dict) and one.get("name") == "default"]
        source = named[0].get("template") if named else None
    if path.exists():
        source = read_text(path, "the chat template")
    if not isinstance(source, str) or not source:
        return None
    added = tokenizer.get_added_tokens_decoder().values()
    return ChatTemplate(
        source,
        marks=tuple(token.content for token in added if token.special),
        bos_token=_content(config.get("bos_token")),
        eos_token=_content(config.get("eos_token")),
    )


def _config(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        config = parse_json(read_text(path, "the tokenizer's settings"), deepest=DEEPEST)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from error
    return config if isinstance(config, dict) else {}


def _content(token: Any) -> str:
    """The text of a token in a `tokenizer_config.json`: a text, or an object with one."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _short_hash(digest: str, eos_id: int | None, chat: ChatTemplate | None) -> str:
    """Of all that changes how long a sample is: tokens, what ends them, how chats are written."""
    written = f"{digest} {eos_id}" + (f" {chat.source}" if chat else "")
    return hashlib.sha256(written.encode("utf-8", "surrogateescape")).hexdigest()[:HASH_CHARACTERS]
