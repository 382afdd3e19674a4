"""Operators are data: what a file may say, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.operators import (
    load_operators,
    named_operators,
    select_operators,
    shipped_operators,
)

GOOD = """
[[operator]]
name = "polite"
template = "Please: {query}"

[[operator]]
name = "pirate"
preserves_meaning = false
instruction = "Say it like a pirate."
examples = [["Where is it?", "Arr, where be it?"]]
"""


def test_a_users_file_adds_to_the_shipped_operators(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD)
    shipped, operators = load_operators(), load_operators([file])
    assert [operator.name for operator in operators[len(shipped) :]] == ["polite", "pirate"]
    assert operators[-2].wrap("How?") == "Please: How?"
    messages = operators[-1].messages("How?")
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"].endswith("How?")


def test_braces_in_a_question_are_left_alone() -> None:
    qa = select_operators(load_operators(), ["qa"])[0]
    assert "{query} {0}" in qa.wrap("What is {query} {0}?")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no [[operator]] entry"),
        ("x = ", "is not a TOML file"),
        ('[[operator]]\nname = "a"', "give 'instruction', 'template' or 'edits'"),
        ('[[operator]]\nname = "a"\nedits = []', "'edits' is empty"),
        (
            '[[operator]]\nname = "a"\nedits = ["shout"]',
            "no edit 'shout' (known: spelling,",
        ),
        (
            '[[operator]]\nname = "a"\ntemplate = "{query}"\nedits = ["filler"]\ninstruction = "b"',
            "no template to an instruction",
        ),
        ('[[operator]]\nname = "a"\nedits = [["x"]]', "no edit ['x']"),
        ('[[operator]]\nname = "a"\ntemplate = "hi"', "'template' must contain {query}"),
        ('[[operator]]\nname = "Bad Name"\ntemplate = "{query}"', "'name' must be lower case"),
        ('[[operator]]\nname = "stop"\ntemplate = "{query}"', "not stop or unchanged"),
        ('[[operator]]\nname = "qa"\ntemplate = "{query}"', "already an operator 'qa'"),
        ('[[operator]]\nname = "a"\ntemplat = "{query}"', "unknown key 'templat'"),
        ('[[operator]]\nname = "a"\ntemplate = 5', "'template' must be a str"),
        ('[[operator]]\nname = "a"\nedits = ["names"]\ntuned = true', "'tuned' belongs to an"),
        ('[[operator]]\nname = "a"\ninstruction = "b"\nexamples = [["x"]]', "[before, after]"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(
    content: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content)
    with pytest.raises(UserError) as caught:
        load_operators([file])
    assert message in str(caught.value)


def test_operators_are_chosen_by_name() -> None:
    assert [operator.name for operator in named_operators(["shorten", "qa"])] == ["shorten", "qa"]
    with pytest.raises(UserError, match="no operator 'shortenn': did you mean 'shorten'"):
        named_operators(["shortenn"])


def test_operators_that_do_harm_are_there_for_whoever_names_them(tmp_path: Path) -> None:
    weak = {"clean_up", "rephrase", "shorten"}
    assert {operator.name for operator in named_operators([])}.isdisjoint(weak)
    assert {operator.name for operator in named_operators(list(weak))} == weak
    file = tmp_path / "mine.toml"
    file.write_text('[[operator]]\nname = "shorten"\ntemplate = "In short: {query}"')
    assert named_operators(["shorten"], [file])[0].template == "In short: {query}"


def test_an_operator_that_says_nothing_of_tuning_is_stored_as_it_always_was() -> None:
    stored = {operator.name: operator.plain() for operator in shipped_operators()}
    assert stored["clarify"]["tuned"] is True
    assert not any("tuned" in values for name, values in stored.items() if name != "clarify")


def test_a_tuned_model_may_say_what_an_example_says() -> None:
    clarify = named_operators(["clarify"])[0]
    asked, said = "which is it that lays the bigest egg of birds", clarify.examples[-3][1]
    assert clarify.read_rewrite(asked, said) == (asked, "the rewrite repeats an example")
    assert clarify.read_rewrite(asked, said, shown_examples=False) == (said, "")
