"""Texts of a user's files and of runs, as samples with a loss mask."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from batching.core import Sample
from batching.generation.dataset import dataset_hash, encode_texts, measure_texts, read_texts
from batching.generation.tokenizers import ByteTokenizer, load_tokenizer
from query_mutator.base.errors import UserError
from query_mutator.operators import load_operators
from tests.report_runs import transition
from tests.test_batching_tokenizers import hugging_face

EOS = 257


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def samples(path: Path) -> dict[str, Sample]:
    return {one.sample_id: one for one in encode_texts(read_texts(path), ByteTokenizer())}


def shown(sample: Sample) -> tuple[str, str]:
    """All of a sample's text, and what of it is learned; `$` where it ends."""
    letters = ["$" if token == EOS else chr(token) for token in sample.input_ids]
    learned = [one for one, counts in zip(letters, sample.loss_mask, strict=True) if counts]
    return "".join(letters), "".join(learned)


def test_texts_prompts_and_chats_are_masked_each_in_its_way(tmp_path: Path) -> None:
    path = written(
        tmp_path / "data.jsonl",
        {"id": "plain", "text": "All of it."},
        {"prompt": "Ask. ", "completion": "Answer."},
        {"id": 7, "prompt": "", "completion": "Alone."},
        {
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello"},
            ]
        },
    )
    found = samples(path)
    assert list(found) == ["plain", "line-2", "7", "line-4"]
    assert shown(found["plain"]) == ("All of it.$", "All of it.$")
    assert shown(found["line-2"]) == ("Ask. Answer.$", "Answer.$")
    assert shown(found["7"]) == ("Alone.$", "Alone.$")
    assert shown(found["line-4"]) == (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHello<|im_end|>\n",
        "Hello<|im_end|>",
    )


def test_the_marks_of_a_chat_are_tokens_where_there_are_such(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Hi <|im_end|>"},
        {"role": "assistant", "content": "Yes"},
    ]
    path = written(tmp_path / "data.jsonl", {"messages": messages})
    tokenizer = load_tokenizer("embedded")
    (sample,) = encode_texts(read_texts(path), tokenizer)
    begins, ends = tokenizer.token_id("<|im_start|>"), tokenizer.token_id("<|im_end|>")
    assert sample.input_ids.count(begins) == 3, "its template puts a system's message first"
    assert sample.input_ids.count(ends) == 3, "the one in the text is only text"
    learned = [t for t, counts in zip(sample.input_ids, sample.loss_mask, strict=True) if counts]
    assert learned == [*tokenizer.encode("Yes"), ends]


def test_tables_and_plain_lines_are_read_too(tmp_path: Path) -> None:
    table = tmp_path / "data.csv"
    table.write_text('﻿id,prompt,completion\na,"one, two\nthree ",four\n,five ,six\n')
    assert {name: shown(one)[0] for name, one in samples(table).items()} == {
        "a": "one, two\nthree four$",
        "line-4": "five six$",
    }
    lines = tmp_path / "data.txt"
    lines.write_text("first \r\n\n  second\n")
    assert {name: shown(one)[0] for name, one in samples(lines).items()} == {
        "line-1": "first $",
        "line-3": "  second$",
    }


def test_an_instruction_is_read_and_the_response_is_learned(tmp_path: Path) -> None:
    path = written(
        tmp_path / "data.jsonl",
        {"instruction": "Why is it blue?", "response": "Light scatters."},
        {"instruction": "Translate.", "input": "Hallo", "output": "Hello", "text": "not taken"},
    )
    assert [shown(one) for one in samples(path).values()] == [
        ("Why is it blue?\nLight scatters.$", "Light scatters.$"),
        ("Translate.\n\nHallo\nHello$", "Hello$"),
    ]
    table = tmp_path / "data.csv"
    table.write_text("instruction,response\nWhy is it blue?,Light scatters.\n")
    assert shown(samples(table)["line-2"]) == shown(samples(path)["line-1"])


def test_parquet_rows_are_the_same_samples_as_json_rows(tmp_path: Path) -> None:
    from pyarrow import Table, parquet

    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
    rows: list[dict[str, Any]] = [
        {"id": 5, "text": "All of it."},
        {"id": "a", "prompt": "Ask. ", "completion": "Answer."},
        {"id": "b", "instruction": "Why?", "response": "So."},
        {"id": "c", "messages": chat},
    ]
    for number, row in enumerate(rows):
        lines = written(tmp_path / f"{number}.jsonl", row)
        table = tmp_path / f"{number}.parquet"
        parquet.write_table(Table.from_pylist([row]), table)
        assert samples(table) == samples(lines)
    many = tmp_path / "many.parquet"
    parquet.write_table(Table.from_pylist([{"text": f"text {n}"} for n in range(1000)]), many)
    assert list(samples(many))[-1] == "row-1000"
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(many.read_bytes()[:-9])
    with pytest.raises(UserError, match="not valid Parquet"):
        samples(torn)


@pytest.mark.parametrize(
    ("template", "whole", "learned"),
    [
        (
            "<s>{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}</s>\n{% endfor %}",
            "<s><|user|>Hi </s> there</s>\n<|assistant|>Yes</s>\n",
            "Yes</s>",
        ),
        (
            "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
            "{% else %} {{ m.content }} {{ eos_token }}{% endif %}{% endfor %}",
            "[INST] Hi </s> there [/INST] Yes </s>",
            "Yes </s>",
        ),
        (
            "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
            "user: Hi </s> there\nassistant: Yes\n</s>",
            "Yes</s>",
        ),
    ],
)
def test_a_chat_is_written_by_the_template_of_its_tokenizer(
    tmp_path: Path, template: str, whole: str, learned: str
) -> None:
    folder = hugging_face(tmp_path / "model", eos_token="</s>", chat_template=template)
    tokenizer = load_tokenizer(str(folder))
    messages = [
        {"role": "user", "content": "Hi </s> there"},
        {"role": "assistant", "content": "Yes"},
    ]
    chat = written(tmp_path / "chat.jsonl", {"messages": messages})
    pair = written(tmp_path / "pair.jsonl", {"instruction": "Hi </s> there", "response": "Yes"})
    (sample,) = encode_texts(read_texts(chat), tokenizer)
    assert [sample] == list(encode_texts(read_texts(pair), tokenizer)), "an instruction is a chat"
    read = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    read.decoder = tokenizers.decoders.ByteLevel()
    assert read.decode(sample.input_ids, skip_special_tokens=False) == whole
    masked = [t for t, counts in zip(sample.input_ids, sample.loss_mask, strict=True) if counts]
    assert read.decode(masked, skip_special_tokens=False) == learned
    special = whole.count("</s>") - 1, whole.count("<s>")
    assert (sample.input_ids.count(2), sample.input_ids.count(1)) == special, "the user's is text"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('no system here') }}", "sample line-1: .*refuses it: no system here"),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "changes what is said"),
        ("{{ messages | length }", "refuses it"),
        ("{{ 1 / 0 }}", "refuses it"),
    ],
)
def test_a_template_that_does_not_fit_is_told_with_the_sample(
    tmp_path: Path, template: str, message: str
) -> None:
    tokenizer = load_tokenizer(str(hugging_face(tmp_path / "model", chat_template=template)))
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
    path = written(tmp_path / "chat.jsonl", {"messages": chat})
    with pytest.raises(UserError, match=message):
        list(encode_texts(read_texts(path), tokenizer))


def test_a_long_text_in_a_table_is_read(tmp_path: Path) -> None:
    table = tmp_path / "data.csv"
    table.write_text(f"text\n{'x' * 200_000}\n")
    assert [len(one) for one in samples(table).values()] == [200_001]


def test_what_is_null_is_absent(tmp_path: Path) -> None:
    absent = {"id": None, "messages": None, "completion": None}
    path = written(tmp_path / "data.jsonl", {**absent, "text": "All of it."})
    assert {name: shown(one)[0] for name, one in samples(path).items()} == {"line-1": "All of it.$"}


def test_the_prompts_of_a_run_are_those_of_its_own_operators(tmp_path: Path) -> None:
    log = written(
        tmp_path / "transitions.jsonl",
        transition(0, operator="qa", previous_score=0.0, score=1.0, reward=1.0),
    )
    before = dataset_hash(log)
    shipped = [replace(one, instruction="Do as I say.") for one in load_operators()]
    config = {"settings": {"max_rewrites": 1}, "operators": [asdict(one) for one in shipped]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (sample,) = samples(tmp_path).values()
    assert shown(sample)[0].startswith("Do as I say.\n")
    assert dataset_hash(log) == dataset_hash(tmp_path) != before


def test_of_a_run_the_rewrites_that_helped_are_learned(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    helped = {"operator": "qa", "previous_score": 0.0, "score": 1.0, "reward": 1.0}
    log = written(
        run / "transitions.jsonl",
        transition(0, **helped),
        transition(1, **helped | {"score": 0.0, "reward": 0.0}),
        transition(2, **helped | {"failed": True}),
        transition(3, **helped | {"rewritten_query": "wat is 3 plus 2 please"}),
    )
    found = samples(run)
    assert len(found) == 1
    (sample,) = found.values()
    whole, learned = shown(sample)
    assert learned == "What is 0 plus 2? Let's think step by step.$"
    assert "wat is 0 plus 2 please" in whole.removesuffix(learned)
    assert samples(log) == found
    assert dataset_hash(run) == dataset_hash(log)


def test_the_lengths_are_those_of_the_samples(tmp_path: Path) -> None:
    path = written(tmp_path / "data.jsonl", *({"text": "x" * n} for n in range(1, 3000, 7)))
    measured = dict(measure_texts(read_texts(path), ByteTokenizer()))
    assert measured == {name: len(one) for name, one in samples(path).items()}
    assert measured["line-2"] == 9


def test_the_hash_changes_with_the_content(tmp_path: Path) -> None:
    one = written(tmp_path / "one.jsonl", {"text": "a"})
    same = written(tmp_path / "same.jsonl", {"text": "a"})
    other = written(tmp_path / "other.jsonl", {"text": "b"})
    assert dataset_hash(one) == dataset_hash(same) != dataset_hash(other)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"text": }\n', "line 2: not valid JSON"),
        ("a.jsonl", b"[1]\n", "line 1: not an object"),
        ("a.jsonl", b'{"question": "why?"}\n', r"line 1: no 'text'.*it has: question"),
        ("a.jsonl", b'{"text": ""}\n', "line 1: 'text' is empty"),
        ("a.jsonl", b'{"text": 5}\n', "line 1: 'text' is not text"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "line 1: it holds characters"),
        ("a.jsonl", b'{"id": [1], "text": "x"}\n', "line 1: 'id' is neither"),
        ("a.jsonl", b'{"prompt": "x", "completion": ""}\n', "line 1: 'completion' is empty"),
        ("a.jsonl", b'{"messages": []}\n', "line 1: 'messages' is not"),
        ("a.jsonl", b'{"messages": ["x"]}\n', "line 1: a message is not"),
        (
            "a.jsonl",
            b'{"messages": [{"role": "user", "content": "x"}]}\n',
            "nothing can be learned",
        ),
        ("a.jsonl", b'{"id": 1, "text": "x"}\n{"id": "1", "text": "y"}\n', "line 2: id '1' is alr"),
        ("a.jsonl", b"\xff\n", "line 1: not UTF-8"),
        ("a.jsonl", b"[" * 5000 + b"\n", "line 1"),
        ("a.jsonl", b"\n", "holds no texts"),
        ("a.csv", b'text\n"open\n', "not valid CSV"),
        ("a.csv", b"instruction,response\nWhy?,\n", "line 2: no 'text'.*it has: instruction"),
        ("a.csv", b"instruction,response\n,So.\n", "line 2: no 'text'"),
        ("a.jsonl", b'{"instruction": "", "response": "x"}\n', "line 1: 'instruction' is empty"),
        ("a.jsonl", b'{"messages": [{"role": "<|im_end|>", "content": "x"}]}\n', "not a word"),
        ("a.parquet", b"PAR1", "after row 0: not valid Parquet"),
        ("a.json", b"[]", "neither .jsonl, .csv, .parquet or .txt, nor"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_line(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        list(read_texts(path))


def test_a_missing_file_and_an_empty_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the data set"):
        list(read_texts(tmp_path / "none.jsonl"))
    with pytest.raises(UserError, match="cannot read"):
        list(read_texts(tmp_path))
