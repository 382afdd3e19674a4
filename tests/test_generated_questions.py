"""Generated questions: exact answers, each asked once, evenly spread."""

from __future__ import annotations

import calendar
import doctest
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from datetime import date
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from query_mutator.data import load_questions
from query_mutator.data.families import FAMILIES, numbers
from query_mutator.data.families.messy import UNITS, typos
from query_mutator.data.generate import (
    KINDS,
    MADE_MESSY,
    NAMES,
    PHRASINGS,
    THINGS,
    generate,
    is_written,
)
from query_mutator.english.facts import find_facts

SEEDS = range(5)
ROOT = Path(__file__).parent.parent
MONTH = {name: number for number, name in enumerate(calendar.month_name) if name}
DAY = {name: number for number, name in enumerate(calendar.day_name)}
IN_ONE = {
    "kilometers=meters": 1000, "meters=centimeters": 100, "centimeters=millimeters": 10,
    "feet=inches": 12, "yards=feet": 3, "kilograms=grams": 1000, "metric tons=kilograms": 1000,
    "pounds=ounces": 16, "liters=milliliters": 1000, "gallons=quarts": 4, "minutes=seconds": 60,
    "hours=minutes": 60, "days=hours": 24, "weeks=days": 7, "years=months": 12,
    "decades=years": 10, "centuries=years": 100, "dozen=eggs": 12, "pairs=pieces": 2,
    "euros=cents": 100, "dollars=dimes": 10,
}  # fmt: skip


def answer(row: dict[str, Any]) -> str:
    return str(row["key_facts"][0][0])


def numbers_in(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", text)]


def phrasings() -> dict[str, Any]:
    return tomllib.loads(PHRASINGS.read_text(encoding="utf-8"))


@pytest.fixture(params=SEEDS, scope="module")
def rows(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return generate(request.param)


def test_the_command_prints_the_same_rows_each_time() -> None:
    command = [sys.executable, "-m", "query_mutator.data.generate"]
    outputs = [subprocess.check_output(command, cwd=ROOT, text=True) for _ in range(2)]
    assert outputs[0] == outputs[1]
    assert [json.loads(line) for line in outputs[0].splitlines()] == generate(0)
    assert generate(0) != generate(1)


def test_the_rows_are_read_as_questions(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "generated.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    shipped = {
        question.question.casefold() for question in load_questions() if "-g" not in question.id
    }
    questions = load_questions(file)
    assert len(questions) == 144
    assert not shipped & {question.question.casefold() for question in questions}
    assert len({question.question.casefold() for question in questions}) == 144


def test_references_hold_the_key_facts_and_questions_do_not(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert all(find_facts(row["reference"], row["key_facts"])), row
        assert not any(is_written(fact, row["question"]) for fact in row["key_facts"]), row
        assert "{" not in row["question"] + row["reference"]


def test_no_meaning_is_asked_twice(rows: list[dict[str, Any]]) -> None:
    meanings = [row["meaning"] for row in rows]
    assert len(set(meanings)) == len(meanings)
    assert not set(meanings) & {meaning for family in FAMILIES for meaning in family.asked}


def test_inverse_computations_share_their_meaning(rows: list[dict[str, Any]]) -> None:
    asked = {meaning for family in FAMILIES for meaning in family.asked}
    for meaning in asked | {row["meaning"] for row in rows}:
        if meaning.startswith(("sum:", "product:")):
            a, b, c = numbers_in(meaning)
            assert c == (a + b if meaning.startswith("sum:") else a * b)
            assert a < b or (a == b and meaning.startswith("product:"))
    assert {"sum:3+5=8", "sum:9+11=20", "product:2*150=300", "product:4*20=80"} <= asked
    assert not any(meaning.startswith(("difference:", "quotient:")) for meaning in asked)


def test_no_phrasing_name_or_thing_comes_twice(rows: list[dict[str, Any]]) -> None:
    masked = [re.sub(r"\d+", "#", row["question"]) for row in rows]
    assert len(set(masked)) == len(masked)
    for word in NAMES + THINGS:
        assert sum(bool(re.search(rf"\b{word}\b", text, re.IGNORECASE)) for text in masked) < 2
    uses: Counter[str] = Counter()
    for topic in (topic for family in FAMILIES for topic in family.topics):
        uses[topic.phrasings] += topic.clear + sum(kind in MADE_MESSY for kind in topic.messy)
    for name, count in uses.items():
        questions = [question for question, _ in phrasings()[name]["clear"]]
        assert sum(question.endswith("?") for question in questions) >= count, name


def test_only_questions_are_told_in_stories(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["kind"] in ("filler", "run-on"):
            assert not re.search(r", (add|convert|express|change|name) ", row["question"]), row
            assert re.search(r"\b(how|what|which)\b", row["question"]), row


def test_families_styles_kinds_and_splits_are_balanced(rows: list[dict[str, Any]]) -> None:
    for prefix, size in (("ari", 72), ("uni", 36), ("dat", 36)):
        family = [row for row in rows if row["id"].startswith(f"{prefix}-g")]
        kinds = Counter(row["kind"] for row in family)
        assert kinds == {kind: size // (2 if kind == "clear" else 12) for kind in KINDS}
        for kind in KINDS:
            splits = Counter(row["split"] for row in family if row["kind"] == kind)
            assert splits["train"] == pytest.approx(0.6 * splits.total(), abs=0.8)
    for kind in KINDS:
        splits = Counter(row["split"] for row in rows if row["kind"] == kind)
        assert splits["train"] == pytest.approx(0.6 * splits.total(), abs=0.5)
    assert all((row["style"] == "clear") == (row["kind"] == "clear") for row in rows)
    categories = Counter(row["category"] for row in rows)
    assert categories == {"arithmetic": 72, "units-and-dates": 72}


def test_arithmetic_is_right_and_asked_with_the_same_numbers(rows: list[dict[str, Any]]) -> None:
    for row in rows[:72]:
        operation, terms = row["meaning"].split(":")
        values = numbers_in(terms)
        said = numbers_in(row["question"])
        percent = re.search(r"(\d+)(?:%| percent)", row["question"])
        if operation == "percent":
            assert values[0] * values[1] == values[2] * 100, row
        elif percent:
            said[said.index(int(percent[1]))] = 100 // int(percent[1])
        elif operation == "sequence":
            assert len({b - a for a, b in pairwise(values)}) == 1, row
            assert said in (values[:-1], values[:0:-1]), row
        elif len(said) == 1:
            said.append(2)
        terms_twice = [values[1], values[1], 2 * values[1]] if values[0] == 2 else values
        assert sorted([*said, int(answer(row))]) in (sorted(values), terms_twice), row


def test_conversions_are_right(rows: list[dict[str, Any]]) -> None:
    for row in rows[72:108]:
        match = re.fullmatch(r"convert:(\d+)(?:/(\d))? (.+)", row["meaning"])
        assert match
        large = int(match[1]) / int(match[2] or 1)
        small = large * IN_ONE[match[3]]
        assert float(answer(row)) in (large, small), row
        given = numbers_in(row["question"])
        assert given in ([], [small if float(answer(row)) == large else large]), row


def test_dates_are_right(rows: list[dict[str, Any]]) -> None:
    for row in rows[108:]:
        topic, asked = row["meaning"].split(":")
        if topic in ("weekday", "month"):
            start, n, end = re.split(r"[+=]", asked)
            table, length = (DAY, 7) if topic == "weekday" else (MONTH, 12)
            assert (table[start] + int(n) - table[end]) % length == 0, row
            assert answer(row) in (start, n, end), row
            assert answer(row) == n or sum(x in row["question"].title() for x in (start, end)) == 1
        elif topic == "date":
            start, n, end = re.split(r"[+=]", asked)
            first, last = (
                date(2023, MONTH[text.split()[0]], int(text.split()[1])) for text in (start, end)
            )
            assert (last - first).days == int(n), row
            assert answer(row) in (n, end), row
            if answer(row) == end:
                month, day = end.split()
                word = numbers.ordinals(int(day))[1]
                for said in (f"{month} {word}", f"the {word} of {month}", f"{month[:3]} {day}"):
                    assert all(find_facts(said, row["key_facts"])), row
        elif topic == "days-in-month":
            thirty = {"April", "June", "September", "November"}
            assert answer(row) == ("30" if asked in thirty else "31"), row
        elif topic == "days-in-year":
            assert answer(row) == ("365" if int(asked) % 4 else "366"), row
        else:
            leap, following = numbers_in(asked)
            (year,) = numbers_in(row["question"])
            assert topic == "leap"
            assert leap % 4 == 0
            assert leap < year < following == leap + 4, row
            assert int(answer(row)) == (leap if "before" in row["reference"] else following), row


def test_typos_leave_numbers_names_and_units_alone(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["kind"] == "typos":
            assert row["question"] == row["question"].lower()
            assert "three" not in row["question"]
            if row["meaning"].startswith("convert:"):
                units = re.split(r"[ =]", row["meaning"])[1:]
                assert sum(unit in row["question"] for unit in units) >= len(units) - 1, row
                assert row["reference"].rstrip(".").split()[-1] in row["question"], row
    text = "There were 1234 people from Monday to May."
    for seed in range(50):
        messy = typos(text, Random(seed))
        assert "1234" in messy
        assert "monday" in messy
        assert messy != text.lower()
        for question in (pair[0] for topic in phrasings().values() for pair in topic["clear"]):
            plain = re.sub(r"\{\w+\}", "7", question)
            slips = zip(typos(plain, Random(seed)).split(), plain.lower().split(), strict=True)
            slipped = [b for a, b in slips if a != b.rstrip(".?") and a != b]
            assert 1 <= len(slipped) <= 2, question
            assert not UNITS.intersection(slipped), question


def test_numbers_are_spelled_out() -> None:
    results = doctest.testmod(numbers)
    assert results.attempted > 0
    assert results.failed == 0
    assert numbers.spellings(8) == ("8", "eight")
    assert numbers.spellings(1000) == ("1000", "1 000", "one thousand", "a thousand")
    assert "twenty-five hundred" in numbers.spellings(2500)
    assert "three hundred and sixty-six" in numbers.spellings(366)
