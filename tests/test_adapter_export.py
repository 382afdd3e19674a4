"""An exported adapter does in llama.cpp what it did in torch; what a GGUF cannot say is told."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
import torch
from gguf import GGUFReader

from query_mutator import cli
from query_mutator.base.errors import UserError
from query_mutator.models.calls import Message
from query_mutator.operators.tuned import TUNED_INSTRUCTION, tuned_messages
from query_mutator.tuning.export import export_adapter
from tests.adapters import embedded_in_torch, embedded_tokenizer, save_adapter
from tests.llama_child import llama_server
from tests.waiting import ENOUGH_S

QUESTIONS = ("wat is teh capital of peru", "how many legs does a spider have, my son asked")
CONTINUED = 5


def tokens_of(messages: Sequence[Message]) -> list[int]:
    chat = [dict(message) for message in messages]
    return list(
        embedded_tokenizer().apply_chat_template(
            chat, add_generation_prompt=True, return_dict=False
        )
    )


def in_torch(model: Any, messages: Sequence[Message]) -> tuple[list[int], list[float]]:
    """The tokens that follow, chosen greedily, and their log-probabilities."""
    prompt = tokens_of(messages)
    tokens: list[int] = []
    logprobs: list[float] = []
    with torch.inference_mode():
        for _ in range(CONTINUED):
            found = model(torch.tensor([prompt + tokens])).logits[0, -1].log_softmax(-1)
            tokens.append(int(found.argmax()))
            logprobs.append(float(found.max()))
    return tokens, logprobs


def in_llama(url: str, messages: Sequence[Message]) -> tuple[list[int], list[float]]:
    asked = {"messages": list(messages), "max_tokens": CONTINUED, "temperature": 0}
    asked |= {"logprobs": True, "top_logprobs": 1, "ignore_eos": True}
    found = requests.post(f"{url}/v1/chat/completions", json=asked, timeout=ENOUGH_S).json()
    content = found["choices"][0]["logprobs"]["content"]
    return [one["id"] for one in content], [one["logprob"] for one in content]


def without_effect(adapter: Path, directory: Path) -> Path:
    """A copy of an adapter whose B is 0."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(adapter, directory)
    file = directory / "adapter_model.safetensors"
    weights = load_file(file)
    save_file({name: w * ("lora_A" in name) for name, w in weights.items()}, file)
    return directory


@pytest.mark.slow
def test_what_llama_says_with_it_is_what_torch_says(tmp_path: Path) -> None:
    from peft import PeftModel

    model = embedded_in_torch()
    adapter = save_adapter(tmp_path / "adapter", model)
    # llama.cpp rounds activations where weights have few bits: with the base in float16 they differ
    # by so little that a row out of place would show. An adapter of nothing makes that base.
    nothing = without_effect(adapter, tmp_path / "nothing")
    base = export_adapter(nothing, "embedded", tmp_path / "base", merged="f16").merged
    made = export_adapter(adapter, "embedded", tmp_path / "made", merged="f16", half=False)
    assert base
    assert made.merged
    chats = [tuned_messages(question) for question in QUESTIONS]
    unchanged = [in_torch(model, chat) for chat in chats]
    tuned = PeftModel.from_pretrained(model, str(adapter)).eval()
    expected = [in_torch(tuned, chat) for chat in chats]
    tuned.unload()
    assert all(now[0] != before[0] for now, before in zip(expected, unchanged, strict=True))
    for file, gguf in ((base, made.adapter), (made.merged, None)):
        with llama_server(file, gguf) as url:
            found = [in_llama(url, chat) for chat in chats]
        for (tokens, logprobs), (right, torch_logprobs) in zip(found, expected, strict=True):
            assert tokens == right
            assert logprobs == pytest.approx(torch_logprobs, abs=0.15)


def tiny(directory: Path, kind: str) -> Any:
    """A model of two layers of random weights, saved as transformers saves models."""
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 64}
    config = AutoConfig.for_model(
        kind, num_attention_heads=4, num_key_value_heads=2, head_dim=16, **shape
    )
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config)
    model.save_pretrained(directory)
    return model


def tensors_of(file: Path) -> dict[str, np.ndarray[Any, Any]]:
    return {tensor.name: tensor.data for tensor in GGUFReader(file).tensors}


@pytest.fixture
def tiny_adapter(tmp_path: Path) -> Path:
    return save_adapter(tmp_path / "run" / "adapter", tiny(tmp_path / "llama", "llama"))


def test_a_directory_of_transformers_is_a_base_too(tiny_adapter: Path, tmp_path: Path) -> None:
    exported = export_adapter(tiny_adapter, str(tmp_path / "llama"), tmp_path / "out", half=False)
    fields = GGUFReader(exported.adapter).fields
    told = {key: fields[key].contents() for key in fields if not key.startswith("GGUF")}
    assert told == {
        "general.architecture": "llama",
        "general.type": "adapter",
        "adapter.type": "lora",
        "adapter.lora.alpha": 8.0,
    }
    found = tensors_of(exported.adapter)
    assert len(found) == 2 * 2 * 7
    assert found["blk.1.ffn_down.weight.lora_a"].shape == (4, 96)
    assert found["blk.1.attn_k.weight.lora_b"].shape == (32, 4)


@pytest.mark.parametrize(("kind", "moved"), [("llama", True), ("qwen2", False)])
def test_rows_of_q_and_k_change_places_where_llama_cpp_turns_them_in_pairs(
    kind: str, moved: bool, tmp_path: Path
) -> None:
    from safetensors.numpy import load_file

    adapter = save_adapter(tmp_path / "adapter", tiny(tmp_path / "base", kind))
    saved = load_file(adapter / "adapter_model.safetensors")
    exported = export_adapter(adapter, str(tmp_path / "base"), tmp_path / "out", half=False)
    found = tensors_of(exported.adapter)
    layer = "base_model.model.model.layers.0.self_attn."
    for part, name in (("q", "attn_q"), ("k", "attn_k"), ("v", "attn_v"), ("o", "attn_output")):
        b = saved[f"{layer}{part}_proj.lora_B.weight"]
        if moved and part in "qk":  # the first two rows of a head are those of its two halves
            b = b.reshape(-1, 2, 8, b.shape[1]).transpose(0, 2, 1, 3).reshape(b.shape)
        np.testing.assert_array_equal(found[f"blk.0.{name}.weight.lora_b"], b)
        a = saved[f"{layer}{part}_proj.lora_A.weight"]
        np.testing.assert_array_equal(found[f"blk.0.{name}.weight.lora_a"], a)


def test_rank_stabilised_adapters_keep_their_scale(tmp_path: Path) -> None:
    adapter = save_adapter(tmp_path / "a", tiny(tmp_path / "base", "llama"), use_rslora=True)
    exported = export_adapter(adapter, str(tmp_path / "base"), tmp_path / "out")
    alpha = GGUFReader(exported.adapter).fields["adapter.lora.alpha"].contents()
    assert alpha / 4 == pytest.approx(8 / 4**0.5)  # PEFT's scale: alpha by the root of the rank
    assert tensors_of(exported.adapter)["blk.0.attn_q.weight.lora_a"].dtype == np.float16


def test_ollama_is_told_the_base_the_adapter_and_how_to_ask(
    tiny_adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tiny_adapter.parent / "config.json").write_text(
        json.dumps({"settings": {"epochs": 3, "data": "/elsewhere/mine/pairs.jsonl"}, "seed": 5})
    )
    looks = [
        {"step": step, "loss": 1.0, "heldout_loss": loss, "exact_rewrites": 0.5}
        for step, loss in ((20, 0.4), (40, 0.123456), (60, 0.2))
    ]
    (tiny_adapter.parent / "summary.json").write_text(json.dumps({"steps": 60, "looks": looks}))
    base = str(tmp_path / "llama")
    assert cli.main(["export-adapter", str(tiny_adapter), "--base", base]) == 0
    output = tiny_adapter.parent
    text = (output / "Modelfile").read_text()
    assert f"FROM {base}\nADAPTER ./adapter.gguf\n" in text
    assert f'SYSTEM "{TUNED_INSTRUCTION}"' in text
    card = (output / "README.md").read_text()
    for row in ("| settings epochs | 3 |", "| seed | 5 |", "| steps | 60 |"):
        assert row in card
    assert "| best look | step 40, held-out loss 0.1235, share exact 0.5 |" in card
    assert "{" not in card
    assert "pairs.jsonl" in card
    assert "/elsewhere" not in card
    commands = ("ollama create run -f Modelfile", "ollama run run ")
    told = capsys.readouterr().out
    for command in commands:
        assert command in told
        assert command in card


def test_ollama_is_given_the_folder_of_a_model_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    cached = tmp_path / "hub" / "models--somebody--llama"
    snapshot = cached / "snapshots" / "abc"
    adapter = save_adapter(tmp_path / "adapter", tiny(cached / "blobs", "llama"))
    snapshot.mkdir(parents=True)
    for file in (cached / "blobs").iterdir():
        (snapshot / file.name).symlink_to(file)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    made = export_adapter(adapter, "somebody/llama", tmp_path / "out")
    text = made.modelfile.read_text()
    assert f"\nFROM {snapshot}\nADAPTER ./adapter.gguf\n" in text
    assert text.startswith("# Ollama takes no folder of links")


def change_config(directory: Path, **changes: Any) -> None:
    file = directory / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "DoRA": ({"use_dora": True}, "DoRA has no form as a GGUF"),
    "biases": ({"bias": "all"}, "trains biases"),
    "layers": ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
    "patterns": ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
    "no rank": ({"r": None}, "names no rank"),
    "another rank": ({"r": 5}, "no two matrices of rank 5"),
    "prompts": ({"peft_type": "PROMPT_TUNING"}, "not of a LoRA adapter"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_gguf_cannot_say_is_told(name: str, tiny_adapter: Path, tmp_path: Path) -> None:
    changes, message = REFUSED[name]
    change_config(tiny_adapter, **changes)
    with pytest.raises(UserError, match=message):
        export_adapter(tiny_adapter, str(tmp_path / "llama"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_adapter_or_no_base_is_told(
    tiny_adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = str(tmp_path / "llama")
    tiny(tmp_path / "gpt", "phi")

    def refused(*arguments: str) -> str:
        assert cli.main(["export-adapter", *arguments, "--output", str(tmp_path / "out")]) == 2
        told = capsys.readouterr().err
        assert "Traceback" not in told
        assert not (tmp_path / "out").exists()
        return told

    adapter = str(tiny_adapter)
    assert "holds no adapter" in refused(base, "--base", base)
    assert "trained on another model than SmolLM2" in refused(adapter)
    assert "is a GGUF, and" in refused(adapter, "--base", base, "--merged", "q8_0")
    assert "a merged GGUF is of q8_0" in refused(adapter, "--base", base, "--merged", "q3")
    assert "adapters of phi are not exported" in refused(adapter, "--base", str(tmp_path / "gpt"))
    assert "nor a model on this machine" in refused(adapter, "--base", "nobody/nothing")
    assert "is not a GGUF file" in refused(adapter, "--base", str(tiny_adapter / "README.md"))
    with (tiny_adapter / "adapter_model.safetensors").open("r+b") as file:
        file.truncate(1000)
    assert "cannot read the adapter" in refused(adapter, "--base", base)


def write_gguf(file: Path, **values: Any) -> str:
    """A GGUF of two matrices of the tiny Llama, in a kind that nothing here reads, and values."""
    from gguf import GGMLQuantizationType, GGUFWriter

    writer = GGUFWriter(file, "llama")
    found = {"block_count": 2, "attention.head_count": 4, "attention.head_count_kv": 2} | values
    for key, value in found.items():
        if isinstance(value, str):
            writer.add_string(f"llama.{key}", value)
        elif isinstance(value, list):
            writer.add_array(f"llama.{key}", value)
        elif value is not None:
            writer.add_uint32(f"llama.{key}", value)
    for name, rows in {"attn_q": 64, "attn_k": 32}.items():
        writer.add_tensor(
            f"blk.0.{name}.weight",
            np.zeros((rows, 64), np.int8),
            raw_dtype=GGMLQuantizationType.I8,
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(file)


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "no heads": ({"attention.head_count": None}, "head_count is missing"),
    "heads in words": ({"attention.head_count": "four"}, "head_count is 'four'"),
    "heads of each block": ({"attention.head_count": [4, 4]}, r"head_count is '\[4, 4\]'"),
    "more heads than any": ({"attention.head_count": 2**31}, "head_count is '2147483648'"),
    "no block": ({"block_count": 0}, "block_count is '0'"),
    "blocks without end": ({"block_count": 2**32 - 1}, "block_count is '4294967295'"),
    "kv heads of each block": ({"attention.head_count_kv": [2, 2]}, "head_count_kv is"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_gguf_is_refused_as_a_base(name: str, tiny_adapter: Path, tmp_path: Path) -> None:
    values, told = ODD[name]
    base = write_gguf(tmp_path / "odd.gguf", **values)
    with pytest.raises(UserError, match=told) as caught:
        export_adapter(tiny_adapter, base, tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_weights_that_cannot_be_merged_are_told_and_nothing_is_written(tmp_path: Path) -> None:
    model = tiny(tmp_path / "llama", "llama")
    adapter = save_adapter(tmp_path / "adapter", model, layers=["layers.0.self_attn.q_proj"])
    base = write_gguf(tmp_path / "odd.gguf")
    with pytest.raises(UserError, match=r"cannot be merged with an adapter: .*I8"):
        export_adapter(adapter, base, tmp_path / "out", merged="q8_0")
    assert not list((tmp_path / "out").iterdir())


def test_a_full_disk_leaves_nothing_half_written(tiny_adapter: Path, tmp_path: Path) -> None:
    code = (
        "import resource, sys; from query_mutator import cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "export-adapter", str(tiny_adapter)]
    command += ["--base", str(tmp_path / "llama"), "--output", str(tmp_path / "out"), "--float32"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "cannot write" in ended.stderr
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("merged", ["q8_0", "q4_0"])
@pytest.mark.slow
def test_a_merged_model_is_the_base_with_other_weights(merged: str, tmp_path: Path) -> None:
    from gguf.quants import dequantize

    from query_mutator.base.weights import gguf_path

    adapter = save_adapter(tmp_path / "adapter", embedded_in_torch())
    made = export_adapter(adapter, "embedded", tmp_path / "out", merged=merged, half=False)
    assert made.merged
    base, found = GGUFReader(gguf_path()), GGUFReader(made.merged)
    for key, field in base.fields.items():
        if not key.startswith(("GGUF.", "general.file_type")):
            assert found.fields[key].contents() == field.contents()
    parts = tensors_of(made.adapter)
    before = {tensor.name: tensor for tensor in base.tensors}
    for tensor in found.tensors:
        old = before[tensor.name]
        if f"{tensor.name}.lora_a" not in parts:
            assert tensor.tensor_type == old.tensor_type
            np.testing.assert_array_equal(tensor.data, old.data)
            continue
        assert tensor.tensor_type.name == merged.upper()
        a, b = parts[f"{tensor.name}.lora_a"], parts[f"{tensor.name}.lora_b"]
        exact = dequantize(old.data, old.tensor_type) + 2.0 * (b @ a)
        error = np.abs(dequantize(tensor.data, tensor.tensor_type) - exact)
        step = {"q8_0": 2 / 255, "q4_0": 2 / 15}[merged]
        largest = np.abs(exact).reshape(-1, 32).max(1).repeat(32).reshape(exact.shape)
        assert (error <= largest * step * 1.01).all()
    text = (tmp_path / "out" / "Modelfile").read_text()
    assert f"FROM ./merged-{merged}.gguf" in text
    assert "PARAMETER stop <|im_end|>" in text
