"""Tokenizers by name: bytes, Hugging Face files, GGUFs; and files that are none."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from batching.generation.gguf import GgufVocabulary
from batching.generation.tokenizers import LlamaTokenizer, load_tokenizer
from query_mutator.base.errors import UserError
from query_mutator.base.weights import gguf_path
from tests.nightly import examples

TEXTS = [
    "",
    "Why is the sky blue?",
    "  a\n\n b\t c 12345 don't DON'T I'LL we're\r\n",
    "日本語 🎉🧑‍🤝‍🧑 \u00ad\u200b é e\u0301 ١٢٣ ½ Ⅷ",
    "<|im_start|>user\nhi<|im_end|>",
    "\x00\x01\x7f\u2028\xa0 " + "x" * 300,
]


def hugging_face(directory: Path, **config: Any) -> Path:
    """A small tokenizer of its own, with special tokens and a beginning that it would add."""
    directory.mkdir()
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.train_from_iterator(
        TEXTS,
        tokenizers.trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=["<unk>", "<s>", "</s>", "<pad>", "<|im_start|>"],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    made.enable_truncation(5)
    made.enable_padding(length=50)
    made.save(str(directory / "tokenizer.json"))
    if config:
        (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory


def gguf(path: Path, *, pre: str = "gpt-2", **values: Any) -> Path:
    """A GGUF that holds nothing but a tokenizer: the bytes, one merge and one control token."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokens = [*letters, "ab", "<|im_end|>"]
    pairs: dict[str, Any] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 1) + [3],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": len(tokens) - 1,
        **{f"tokenizer.ggml.{name}": value for name, value in values.items()},
    }
    content = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(pairs))
    for key, value in pairs.items():
        content += text(key) + field(value)
    path.write_bytes(content)
    return path


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def field(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    inner = 8 if isinstance(value[0], str) else 4
    items = [text(item) if inner == 8 else struct.pack("<I", item) for item in value]
    return struct.pack("<IIQ", 9, inner, len(value)) + b"".join(items)


@given(st.text(st.characters(codec=None)))
def test_bytes_are_the_bytes_of_the_text(written: str) -> None:
    tokenizer = load_tokenizer("bytes")
    ids = tokenizer.encode(written)
    assert bytes(ids).decode("utf-8", "surrogatepass") == written
    assert tokenizer.pad_id not in ids
    assert tokenizer.eos_id not in ids
    assert max(tokenizer.pad_id, tokenizer.eos_id or 0) < tokenizer.vocab_size


def test_a_hugging_face_tokenizer_is_a_file_or_the_directory_of_one(tmp_path: Path) -> None:
    directory = hugging_face(tmp_path / "model", eos_token="</s>", pad_token={"content": "<pad>"})
    by_directory = load_tokenizer(str(directory))
    by_file = load_tokenizer(str(directory / "tokenizer.json"))
    assert (by_directory.eos_id, by_directory.pad_id, by_directory.vocab_size) == (2, 3, 300)
    assert by_directory.tokenizer_hash == by_file.tokenizer_hash
    assert by_directory.encode_many(TEXTS) == [by_file.encode(one) for one in TEXTS]


def test_nothing_is_added_to_a_text_or_cut_off(tmp_path: Path) -> None:
    directory = hugging_face(tmp_path / "model")
    made = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    made.no_padding()
    made.no_truncation()
    ids = load_tokenizer(str(directory)).encode("Why is the sky blue?")
    assert ids == made.encode("Why is the sky blue?", add_special_tokens=False).ids
    assert len(ids) > 5


@pytest.mark.parametrize("kind", ["hugging face", "gguf"])
def test_a_text_cannot_hold_special_tokens(tmp_path: Path, kind: str) -> None:
    token = "<|im_start|>" if kind == "hugging face" else "<|im_end|>"
    path = hugging_face(tmp_path / "m") if kind == "hugging face" else gguf(tmp_path / "m.gguf")
    tokenizer = load_tokenizer(str(path))
    special = tokenizer.token_id(token)
    assert special is not None
    assert special not in tokenizer.encode(f"a{token}b")


def test_the_end_is_a_usual_one_where_nothing_says_it(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(hugging_face(tmp_path / "model")))
    assert (tokenizer.eos_id, tokenizer.pad_id) == (2, 2)


def test_another_end_is_another_tokenizer(tmp_path: Path) -> None:
    one = load_tokenizer(str(hugging_face(tmp_path / "one", eos_token="</s>")))
    other = load_tokenizer(str(hugging_face(tmp_path / "other", eos_token="<pad>")))
    assert one.tokenizer_hash != other.tokenizer_hash


def test_another_chat_template_is_another_tokenizer(tmp_path: Path) -> None:
    plain = hugging_face(tmp_path / "plain", eos_token="</s>")
    named = [{"name": "tools", "template": "x"}, {"name": "default", "template": "{{ messages }}"}]
    listed = hugging_face(tmp_path / "listed", eos_token="</s>", chat_template=named)
    beside = hugging_face(tmp_path / "beside", eos_token="</s>", chat_template="not this one")
    (beside / "chat_template.jinja").write_text("{{ messages }}")
    hashes = [load_tokenizer(str(one)).tokenizer_hash for one in (plain, listed, beside)]
    assert hashes[0] != hashes[1] == hashes[2]


def test_a_gguf_is_known_by_its_content(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(gguf(tmp_path / "blob-without-suffix")))
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert tokenizer.encode("abc ") == [256, letters.index("c"), letters.index("Ġ")]
    assert (tokenizer.eos_id, tokenizer.pad_id, tokenizer.vocab_size) == (257, 257, 258)


def test_the_hash_is_that_of_the_tokenizer_and_not_of_the_file(tmp_path: Path) -> None:
    plain = load_tokenizer(str(gguf(tmp_path / "a.gguf")))
    longer = gguf(tmp_path / "b.gguf")
    longer.write_bytes(longer.read_bytes() + b"weights of another kind")
    assert load_tokenizer(str(longer)).tokenizer_hash == plain.tokenizer_hash
    changed = load_tokenizer(str(gguf(tmp_path / "c.gguf", merges=["b a", "a b"], tokens=[
        *sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()), "ab", "ba"])))  # fmt: skip
    assert changed.tokenizer_hash != plain.tokenizer_hash
    assert load_tokenizer("embedded").tokenizer_hash == "f4b091e76b24caef", "on every machine"


def test_a_gguf_that_ends_anywhere_is_told(tmp_path: Path) -> None:
    whole = gguf(tmp_path / "whole.gguf").read_bytes()
    torn = tmp_path / "torn.gguf"
    for size in (*range(4, 400, 7), *range(400, len(whole), 211)):
        torn.write_bytes(whole[:size])
        with pytest.raises(UserError, match=r"damaged GGUF|no tokenizer"):
            load_tokenizer(str(torn))


@given(st.data())
@examples(150)
def test_a_gguf_with_changed_bytes_works_or_is_told(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = gguf(tmp_path_factory.getbasetemp() / "changed.gguf")
    content = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(4, len(content) - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        vocabulary = GgufVocabulary.read(path)
        tokenizer = vocabulary.byte_pair_encoding()
    except UserError:
        return
    if tokenizer is not None:
        tokenizer.encode("ab c")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a tokenizer.json"),
        (b"{}", "is not a tokenizer.json"),
        (b"\xff\xfe", "is not UTF-8"),
        (b'{"model": {"type": "BPE", "vocab": {}, "merges": ["a b"]}}', "is not a tokenizer.json"),
    ],
)
def test_a_file_that_is_no_tokenizer_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_tokenizer(str(path))


def test_a_name_that_is_nothing_tells_what_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no tokenizer 'models/x.gguf': name `bytes`, `embedded`"):
        load_tokenizer("models/x.gguf")
    with pytest.raises(UserError, match=r"holds no tokenizer.json"):
        load_tokenizer(str(tmp_path))


@pytest.mark.slow
def test_the_embedded_model_is_tokenised_as_llama_cpp_does_it() -> None:
    llama = LlamaTokenizer("embedded", gguf_path(), GgufVocabulary.read(gguf_path()))
    fast = load_tokenizer("embedded")
    assert fast.encode_many(TEXTS) == llama.encode_many(TEXTS)
    assert fast.token_id("<|im_end|>") == llama.token_id("<|im_end|>") == fast.eos_id
    assert (fast.vocab_size, fast.pad_id) == (llama.vocab_size, llama.pad_id)
    assert fast.tokenizer_hash == llama.tokenizer_hash
    llama.close()


def test_a_gguf_of_an_unknown_kind_is_left_to_llama_cpp_which_may_not_know_it_either(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = gguf(tmp_path / "unknown.gguf", pre="unheard-of")
    with pytest.raises(UserError, match=r"llama.cpp cannot tokenise"):
        load_tokenizer(str(path))
    assert "kind gpt2 unheard-of is left to llama.cpp" in caplog.text
