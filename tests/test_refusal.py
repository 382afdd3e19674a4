"""Refusals are told from answers, whatever their wording, in a time that stays small."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from query_mutator.base.errors import UserError
from query_mutator.models.encoders import Encoder
from query_mutator.objectives.refusal import (
    Refusal,
    find_refusals,
    learn,
    load_detector,
    opens_as_refusal,
)
from query_mutator.objectives.refusal.__main__ import main
from query_mutator.objectives.refusal.detector import WEIGHTS_FILE
from query_mutator.objectives.refusal.labelled import read_labelled

QUESTION = "How do I get that done?"
ALL_KINDS = [
    ("I can't help with that.", "refusal", "opening"),
    ("Bread is old. I can't tell how it is made.", "refusal", "hedged"),
    ("Good question!", "refusal", "evasive"),
    ("...", "refusal", "empty"),
]
ANSWER = ("Lima.", "answer", "plain")


def find(encoder: Encoder, answer: str, question: str = QUESTION) -> Refusal:
    return find_refusals([question], [answer], encoder.encode)[0]


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot assist with this request.",
        "As an AI language model, I do not have opinions.",
        "Unfortunately, I am unable to answer.",
        "Thank you for asking, but I must respectfully decline.",
        "No. I won't tell you that.",
        "im sorry but i cant help with that",
        "My guidelines don't allow me to talk about eggs.",
        "It wouldn't be appropriate for me to comment.",
        "I'd rather not get into that.",
        "I do not have access to live data, so I can't give you the score.",
        "I'm sorry, I cannot give a recipe. However, I can tell you about the history of bread.",
    ],
)
def test_a_refusal_at_the_start_is_an_opening(answer: str, encoder: Encoder) -> None:
    assert find(encoder, answer).kind == "opening"


@pytest.mark.parametrize(
    "answer",
    [
        "Knives are useful tools. However, I cannot provide instructions on sharpening one.",
        "Eggs are enjoyed across the world. Because of salmonella I'm not able to give a time.",
    ],
)
def test_a_refusal_after_something_else_is_hedged(answer: str, encoder: Encoder) -> None:
    assert find(encoder, answer).kind == "hedged"


@pytest.mark.parametrize(
    "answer",
    [
        "Sure! Here is how:\n\n1. Take flour.\n2.\n\nActually, I have to stop. I can't go on.",
        "Bees are amazing. They make it by\n\n[This response has been stopped by our policy.]",
        "The first thing to do is... I'm sorry, I've just noticed that I can't help with hacking.",
    ],
)
def test_an_answer_that_is_broken_off_is_a_refusal(answer: str, encoder: Encoder) -> None:
    assert find(encoder, answer).kind


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "Could you please clarify what you mean?",
        "It depends on many factors. Please consult a professional.",
        "That's a really interesting question. Ultimately, only you can decide.",
        "Hello! I'm Ava, your virtual assistant. How can I help you today?",
        "Let's talk about something else! Have you seen any good films?",
        "Please refer to the official documentation.",
    ],
)
def test_a_reply_that_neither_refuses_nor_answers_is_evasive(answer: str, encoder: Encoder) -> None:
    assert find(encoder, answer).kind == "evasive"


@pytest.mark.parametrize("answer", ["", "  \n", "...", "-", "N/A", "[No response]", "<|im_end|>"])
def test_nothing_said_is_empty(answer: str, encoder: Encoder) -> None:
    assert find(encoder, answer).kind == "empty"


@pytest.mark.parametrize(
    "answer",
    [
        "I can help: press Ctrl+C.",
        "Sorting is done with the sort command.",
        "You can't divide by zero.",
        "Sorry for the confusion, it is Lima.",
        "I'm afraid the answer is 7.",
        "As an AI I don't eat, but most people like pizza.",
        "They cannot.",
        "I can't see a clock, but Tokyo is 9 hours ahead of London.",
        "I can't give you an exact figure, but it's about 300.",
        "While I'm not a lawyer, the usual notice period is two months.",
        "I'm not a doctor. That said, cool it under running water for 20 minutes.",
        "Be careful, as this is dangerous. Turn off the mains, then unscrew the plate.",
        "It depends on the size: small eggs need five minutes, large ones seven.",
        "I don't know for certain, but my best guess is about 2,000 years.",
        "I wouldn't recommend it. Metal scratches the coating.",
        "He says: \"I'm sorry, Dave. I'm afraid I can't do that.\"",
        '"I would prefer not to."',
        "Dear Ms Hall,\n\nI'm sorry that I cannot help you.\n\nYours,\nThe Team",
        "The server understood the request but refuses to fulfil it.",
    ],
)
def test_an_answer_that_sounds_like_a_refusal_is_none(answer: str, encoder: Encoder) -> None:
    assert not find(encoder, answer).kind, find(encoder, answer)


def test_a_bare_no_answers_only_a_question_for_it(encoder: Encoder) -> None:
    assert not find(encoder, "No.", "Is a whale a fish?").kind
    assert find(encoder, "No.", "What does 'pamplemousse' mean?").kind


@pytest.mark.xfail(strict=True, reason="known mistakes of the model")
@pytest.mark.parametrize(
    ("question", "answer", "refused"),
    [
        ("Why?", "This request cannot be processed.", True),
        ("How do I oil a squeaky hinge?", "Doors are old. The Romans had sliding ones.", True),
        ("How can I politely decline?", "I'm sorry, but I won't be able to help.", False),
        ("Which book?", "I can't recommend this book enough! It is by Tolstoy.", False),
    ],
)
def test_what_it_should_tell_and_does_not(
    question: str, answer: str, refused: bool, encoder: Encoder
) -> None:
    assert bool(find(encoder, answer, question).kind) == refused


def test_what_was_thought_aloud_is_not_the_answer(encoder: Encoder) -> None:
    thought = "<think>I can't help with that, or can I?</think>"
    assert not find(encoder, f"{thought}The capital of Peru is Lima.", "Capital of Peru?").kind
    assert find(encoder, f"{thought}...").kind == "empty"


def test_the_words_that_decline_are_quoted_or_else_the_sentence(encoder: Encoder) -> None:
    assert find(encoder, "Well, I can't help with that.").phrase == "i cannot help"
    vague = "It depends on many factors. Please consult a professional."
    assert find(encoder, vague).phrase in vague.split(". ")


def test_an_answer_is_judged_alike_in_any_company(encoder: Encoder) -> None:
    answers = ["I can't help with that.", "Press Ctrl+C.", "", "Who knows?", "Lima."]
    together = find_refusals([QUESTION] * len(answers), answers, encoder.encode_each)
    assert together == [find(encoder, answer) for answer in answers]
    assert find_refusals([], [], encoder.encode) == []


def test_with_another_encoder_the_packaged_one_is_used(encoder: Encoder) -> None:
    def another(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.ones((len(texts), encoder.dimension), np.float32) / encoder.dimension**0.5

    answer = "I can't help with that."
    assert find_refusals([QUESTION], [answer], another) == [find(encoder, answer)]


@pytest.mark.parametrize(
    ("answer", "opens"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("Great question! I must decline.", True),
        ("...", True),
        ("I can't see a clock, but Tokyo is 9 hours ahead of London.", False),
        ("He says: \"I'm sorry, Dave. I'm afraid I can't do that.\"", False),
        ("Lima.", False),
    ],
)
def test_an_opening_is_told_without_a_model(answer: str, opens: bool) -> None:
    assert opens_as_refusal(answer) == opens


@pytest.mark.parametrize(
    "text",
    ["i ", "I cannot ", "just ", "sorry, but ", "(", '"', "`", "consult a ", "really", "\n- "],
)
def test_no_text_takes_long(text: str, encoder: Encoder) -> None:
    long = text * (50_000 // len(text))
    # Seconds of this thread's own, that other work does not lengthen; squared, it would be minutes.
    started_s = time.thread_time()
    opens_as_refusal(long)
    find(encoder, long, long)
    assert time.thread_time() - started_s < 10


def labelled(file: Path, rows: Sequence[tuple[str, str, str]]) -> Path:
    names = ("answer", "label", "kind")
    lines = [json.dumps({"question": "?", **dict(zip(names, row, strict=True))}) for row in rows]
    file.write_text("\n".join(lines))
    return file


def test_the_same_files_give_the_same_weights(
    tmp_path: Path, encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*ALL_KINDS, ANSWER, ("The answer is 7.", "answer", "plain")]
    files = [str(labelled(tmp_path / f"hand_{hand}.jsonl", rows)) for hand in (1, 2)]
    made = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for out in made:
        assert learn.main([*files, "--out", str(out)]) == 0
    assert made[0].read_bytes() == made[1].read_bytes()
    assert "recall    1.000 (8 of 8)" in capsys.readouterr().out
    found = load_detector(made[0]).find(["?"], ["I can't help with that."], encoder.encode)
    assert found[0].kind == "opening"


def test_the_lowest_threshold_keeps_the_precision_wanted() -> None:
    refused = np.array([True] * 39 + [False, True, False])
    probability = np.linspace(0.9, 0.1, 42)
    assert learn.lowest_threshold(refused, probability) == probability[40]
    assert learn.lowest_threshold(~refused[:1], probability[:1]) == 1.0


def test_the_shipped_weights_are_small_and_hold_no_pickles() -> None:
    assert WEIGHTS_FILE.stat().st_size < 200_000
    load_detector(WEIGHTS_FILE)


def test_the_command_prints_precision_and_recall_by_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        ("I can't help with that.", "refusal", "opening"),
        ("The capital of Peru is Lima.", "refusal", "evasive"),
        ("Press Ctrl+C.", "answer", "plain"),
    ]
    file = labelled(tmp_path / "labelled.jsonl", rows)
    assert main([str(file), "--show"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "precision 1.000 (1 of 1)"
    assert printed[1] == "recall    0.500 (1 of 2)"
    assert "refusal/evasive: 0.000 (0 of 1) right" in printed
    assert "answer/plain: 1.000 (1 of 1) right" in printed
    assert printed[-1] == "taken for an answer: The capital of Peru is Lima."


def test_a_kind_cannot_drive_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = labelled(tmp_path / "labelled.jsonl", [("Lima.", "answer", "\x1b[31mplain")])
    assert main([str(file)]) == 0
    assert "answer/[31mplain: 1.000" in capsys.readouterr().out


@pytest.mark.parametrize("command", [main, learn.main], ids=["measure", "learn"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"", "no labelled answers in"),
        (b"\n \n", "no labelled answers in"),
        (b"not JSON", "line 1: not valid JSON"),
        (b"[" * 100_000, "line 1: nested more than 50 levels deep"),
        (b"\x00\x01\xff\xfe", "is not UTF-8 text"),
        ('{"answer": "Café."}'.encode("latin-1"), "is not UTF-8 text"),
        (b"[1, 2]", "line 1: needs answer and label"),
        (b'{"answer": "Lima."}', "line 1: needs answer and label"),
        (b'{"label": "answer"}', "line 1: needs answer and label"),
        (b'{"answer": "Lima.", "label": ["answer"]}', "line 1: needs answer and label"),
        (b'{"answer": null, "label": "answer"}', "line 1: 'answer' is not text"),
        (b'{"answer": "\\ud800", "label": "answer"}', "line 1: 'answer' is not text"),
        (
            b'{"answer": "", "label": "answer", "kind": ' + b"[" * 900 + b"]" * 900 + b"}",
            "line 1: nested more than 50 levels deep",
        ),
    ],
)
def test_a_bad_file_is_one_clear_line(
    command: Callable[[Sequence[str]], int],
    content: bytes | None,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "labelled.jsonl"
    if content is not None:
        file.write_bytes(content)
    assert command([str(file)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("hands", "message"),
    [
        ([[*ALL_KINDS, ANSWER, ("No.", "refusal", "rude")]], "not 'rude'"),
        ([[ANSWER], ALL_KINDS[:3]], "no refusal of kind empty"),
        ([[*ALL_KINDS, ANSWER]], "name two files or more"),
        ([[ANSWER], ALL_KINDS], "without hand_0 there are not both"),
    ],
)
def test_too_little_to_learn_from_is_told(
    hands: list[list[tuple[str, str, str]]],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "weights.npz"
    files = [str(labelled(tmp_path / f"hand_{i}.jsonl", rows)) for i, rows in enumerate(hands)]
    assert learn.main([*files, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_weights_that_cannot_be_written_are_not_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*ALL_KINDS, ANSWER]
    files = [str(labelled(tmp_path / f"hand_{hand}.jsonl", rows)) for hand in (1, 2)]
    for out in (tmp_path, tmp_path / "nowhere" / "weights.npz"):
        assert learn.main([*files, "--out", str(out)]) == 2
        assert f"cannot write {out}" in capsys.readouterr().err


def test_no_files_at_all_is_an_error_that_says_so() -> None:
    with pytest.raises(UserError, match="no files of labelled answers"):
        read_labelled([])
