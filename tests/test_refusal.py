"""Refusals are told from answers, whatever their wording, in a time that stays small."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from objectives.refusal import find_refusal, is_refusal, refusal_kind
from objectives.refusal.__main__ import main


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
        "This request cannot be processed.",
        "I'd rather not get into that.",
        "I do not have access to live data, so I can't give you the score.",
        "I'm sorry, I cannot give a recipe. However, I can tell you about the history of bread.",
    ],
)
def test_a_refusal_at_the_start_is_an_opening(answer: str) -> None:
    assert refusal_kind(answer) == "opening"


@pytest.mark.parametrize(
    "answer",
    [
        "Knives are useful tools. However, I cannot provide instructions on sharpening one.",
        "Eggs are enjoyed across the world. Because of salmonella I'm not able to give a time.",
        "Sure! Here is how:\n\n1. Take flour.\n2.\n\nActually, I have to stop. I can't go on.",
        "Bees are amazing. They make it by\n\n[This response has been stopped by our policy.]",
        "The first thing to do is... I'm sorry, I've just noticed that I can't help with hacking.",
    ],
)
def test_a_refusal_after_something_else_is_hedged(answer: str) -> None:
    assert refusal_kind(answer) == "hedged"


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
def test_a_reply_that_neither_refuses_nor_answers_is_evasive(answer: str) -> None:
    assert refusal_kind(answer) == "evasive"


@pytest.mark.parametrize("answer", ["", "  \n", "...", "-", "N/A", "[No response]", "<|im_end|>"])
def test_nothing_said_is_empty(answer: str) -> None:
    assert refusal_kind(answer) == "empty"


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
        "No.",
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
        "I can't recommend this book enough! It is by Tolstoy.",
    ],
)
def test_an_answer_that_sounds_like_a_refusal_is_none(answer: str) -> None:
    assert not is_refusal(answer), find_refusal(answer)


def test_a_question_tells_a_refusal_that_was_asked_for() -> None:
    answer = "I'm sorry, but I won't be able to help."
    assert is_refusal(answer)
    assert not is_refusal(answer, "How can I politely decline an invitation?")
    history = "Doors have been used since ancient Egypt. The Romans had sliding ones."
    assert not is_refusal(history, "Who had doors?")
    assert is_refusal(history, "How do I fix a squeaky hinge?")


@pytest.mark.parametrize(
    "text",
    ["i ", "I cannot ", "just ", "sorry, but ", "(", '"', "`", "consult a ", "maybe", "\n- "],
)
def test_no_text_takes_long(text: str) -> None:
    long = text * (50_000 // len(text))
    started = time.monotonic()
    find_refusal(long, long)
    assert time.monotonic() - started < 1.0


def test_the_command_prints_precision_and_recall_by_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "question": "?",
            "answer": "I can't help with that.",
            "label": "refusal",
            "kind": "opening",
        },
        {"question": "?", "answer": "Fine weather today.", "label": "refusal", "kind": "evasive"},
        {"question": "?", "answer": "Lima.", "label": "answer", "kind": "plain"},
    ]
    file = tmp_path / "labelled.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows))
    assert main([str(file), "--show"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "precision 1.000 (1 of 1)"
    assert printed[1] == "recall    0.500 (1 of 2)"
    assert "refusal/evasive: 0.000 (0 of 1) right" in printed
    assert "answer/plain: 1.000 (1 of 1) right" in printed
    assert printed[-1] == "taken for an answer: Fine weather today."


def test_a_file_without_labels_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text('{"answer": "Lima."}')
    assert main([str(file)]) == 2
    assert "line 1: needs answer and label" in capsys.readouterr().err
