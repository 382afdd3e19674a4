"""Changes of clear questions: what asks the same in other words, and what asks something else.

They are rough, and need not be grammatical: what is learned from them is weighed beside what
people wrote. Each gives "" where it does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from benchmarks.scoring.change_words import (
    ABOUT_A_PERSON,
    ABOUT_A_THING,
    ASIDES,
    IN_OTHER_WORDS,
    OTHER_STARTS,
    POLITE,
    WITH_A_CLAUSE,
)
from query_mutator.data.families.messy import FILLERS, STORIES, embed, typos
from query_mutator.objectives.drift.numerals import NUMBERS
from query_mutator.objectives.drift.wording import function_words, kinds_file
from query_mutator.operators.edits import EDITS, apply_edits

Change = Callable[[str, Random], str]

IN_WORDS = {f"{value:.0f}": word for word, value in NUMBERS.items() if 2 <= value <= 30}
IN_DIGITS = {word: digits for digits, word in IN_WORDS.items()}
_NUMBER = re.compile(rf"\b(?:\d[\d,]*(?:\.\d+)?|{'|'.join(IN_DIGITS)})\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-zA-Z]+(?: [A-Z][a-zA-Z]+)*")
_THINGS = tuple(
    re.compile(pattern)
    for pattern in (
        r"^What (?:is|are) (?P<thing>.+?) called"
        r"(?P<more> (?:that|which|when|in|of|if|while)\b.+)?\?$",
        r"^What do (?:you|we|people) call (?P<thing>.+)\?$",
        r"^(?:What|Who) (?:is|are|was|were) (?P<thing>(?:the|a|an) .+)\?$",
        r"^Name (?P<thing>the .+)\.$",
    )
)
_WHICH = re.compile(
    r"^(?P<before>|In |On |To |From |Of |At |With )[Ww](?:hich|hat) (?P<rest>\w+.*)\?$"
)
_WHO = re.compile(r"^Who (?!is\b|are\b|was\b|were\b|did\b|can\b)(?P<does>\w+.*)\?$")
_HOW_MANY = re.compile(r"^How (?:many|much) (?P<rest>.+)\?$")
_AUXILIARY = re.compile(r" (?P<rest>(?:is|are|was|were|do|does|did|can|has|have|will|would)\b.*)$")
_SIDES = re.compile(
    r"(?P<left>\w+) (?:minus|divided by|into|from|before|after|than|to|over|under|inside|eats?"
    r"|chases?|turns into|in) (?:a |an |the )?(?P<right>\w+)"
)
_TAIL = re.compile(
    r" (?:of|in|from|by|for|on|at|between|during|after|before|with) (?:the |a |an )?[\w'\" -]+$"
)
_ASKING = re.compile(
    r"\b(?:what\w*|which|who|where|when|how|call\w*|name|word|wat|wich)\b", re.IGNORECASE
)
_CLAUSES = re.compile(r"[,.!?]+|\b(?:and|but|so|because)\b")
_SUPERLATIVE = re.compile(r"\b(?:the|is|'s) (?=(?:\w+est|most \w+)\b)")
LEFT_OUT_OF_TELEGRAMS = frozenset(
    {"is", "are", "the", "a", "an", "do", "does", "did", "you", "in", "of", "to", "that", "was",
     "were", "it", "what", "which"}
)  # fmt: skip


def another_of_its_kind(question: str, random: Random) -> str:
    """`cow` as `sheep`."""
    return _exchanged(question, "kinds", random)


def opposite(question: str, random: Random) -> str:
    """`largest` as `smallest`."""
    return _exchanged(question, "opposites", random)


def alike(question: str, random: Random) -> str:
    """`film` as `movie`: the same is asked."""
    return _exchanged(question, "alike", random)


def another_number(question: str, random: Random) -> str:
    """`7` as `70`, `six` as `seven`."""
    found = list(_NUMBER.finditer(question))
    if not found:
        return ""
    chosen = random.choice(found)
    digits = IN_DIGITS.get(chosen[0].casefold(), chosen[0]).replace(",", "")
    if "." in digits:
        other = f"{digits}1"
    else:
        value = int(digits)
        able = {value + 1, value + 10, value * 10, value * 2, abs(value - 1), int(digits[::-1])}
        able |= {random.randint(2, 99)}
        other = str(random.choice(sorted(able - {value, 0, 1} or {value + 1})))
    if not chosen[0][0].isdigit():
        other = IN_WORDS.get(other, other)
    return _put(question, chosen, other)


def several_of_one(question: str, random: Random) -> str:
    """`a spider` as `three spiders`."""
    thing = r"\b(?:a|an|one)\s+(?:standard |single |adult )?(?P<thing>[a-z]{3,})\b"
    able = list(re.finditer(thing, question))
    if not able:
        return ""
    found = random.choice(able)
    number = random.choice(["two", "three", "four", "five", "2", "3", "10", "a hundred"])
    plural = found["thing"] + ("es" if found["thing"][-1] in "sx" else "s")
    return _put(question, found, f"{number} {plural}")


def another_rank(question: str, random: Random) -> str:
    """`the largest` as `the second largest`, `of the alphabet` as `of half of the alphabet`."""
    places = list(_SUPERLATIVE.finditer(question))
    parts = ["second ", "third ", "second-", "tenth "]
    if not places or random.random() < 0.2:
        places = list(re.finditer(r"\b(?:of|in|on) (?=the )", question))
        parts = ["half of ", "the first half of ", "a third of ", "the second part of "]
    if not places:
        return ""
    end = random.choice(places).end()
    return question[:end] + random.choice(parts) + question[end:]


def one_left_out(question: str, random: Random) -> str:
    """A series without one of its numbers."""
    found = list(re.finditer(r"(?:, | and )\d+\b", question))
    return _put(question, random.choice(found), "") if found else ""


def name_lost(question: str, random: Random) -> str:
    """A question without the name, the number or the end that it hangs on."""
    text = question.rstrip("?.")
    short = len(text.split()) < 9
    able = [tail for tail in _TAIL.finditer(text) if short or re.search(r"[A-Z0-9]", tail[0])]
    left = text[: random.choice(able).start()] if able else ""
    return f"{left}?" if len(left.split()) > 3 else ""


def ends_swapped(question: str, random: Random) -> str:
    """`from A to B` as `from B to A`."""
    able = [
        found
        for found in _SIDES.finditer(question)
        if all(len(side) > 3 or side.isdigit() for side in found.groups())
        and found["left"][0].islower() == found["right"][0].islower()
    ]
    if not able:
        return ""
    chosen = random.choice(able)
    between = question[chosen.end("left") : chosen.start("right")]
    return _put(question, chosen, chosen["right"] + between + chosen["left"])


def another_word(question: str, random: Random, words: Sequence[str]) -> str:
    """A word that says something as any other."""
    able = [
        found
        for found in re.finditer(r"(?<= )[a-z]{4,}", question)
        if found[0] not in function_words()
    ]
    return _put(question, random.choice(able), random.choice(words)) if able else ""


def names_in(question: str) -> list[str]:
    """The names of a question, but for one that begins it."""
    return [match[0] for match in _NAME.finditer(question)]


def another_name(question: str, random: Random, names: Sequence[str]) -> str:
    """A name as another one."""
    found = list(_NAME.finditer(question))
    if not found:
        return ""
    chosen, other = random.choice(found), random.choice(names)
    return "" if other == chosen[0] else _put(question, chosen, other)


def with_an_aside(question: str, random: Random, names: Sequence[str]) -> tuple[str, str]:
    """The question with a side remark on another thing, and the question about that thing."""
    other = another_name(question, random, names) or another_of_its_kind(question, random)
    before, after = question.split(), other.split()
    new = [word.strip("?.,") for word in after if word not in before]
    if not new or len(before) != len(after):
        return "", ""
    frame = random.choice(ASIDES)
    return frame.format(question=question.rstrip("?."), other=" ".join(new)).lower(), other


def another_question_word(question: str, random: Random) -> str:
    """Another thing asked about the same one."""
    if (how_many := _HOW_MANY.match(question)) and random.random() < 0.7:
        return f"{random.choice(OTHER_STARTS['many'])} {how_many['rest']}?"
    which = _WHICH.match(question)
    if which and (split := _AUXILIARY.search(which["rest"])) and random.random() < 0.6:
        if which["before"]:
            return f"{random.choice(OTHER_STARTS['in which'])} {split['rest']}?"
        return f"{random.choice(OTHER_STARTS['which'])} {which['rest']}?"
    if who := _WHO.match(question):
        return random.choice(ABOUT_A_PERSON).format(who["does"])
    thing = _thing_of(question)
    if thing and random.random() < 0.5:
        noun = re.split(r" (?:that|which|when|who|in|of|on|with|while|after|before|if)\b", thing)
        thing = random.choice([thing, noun[0]])
    return random.choice(ABOUT_A_THING).format(thing) if thing else ""


def about_an_aside(question: str, random: Random) -> str:
    """A question about a clause of a messy question that is not what it asks."""
    parts = [part.strip(" .?!") for part in _CLAUSES.split(question)]
    parts = [part for part in parts if 3 <= len(part.split()) <= 12 and not _ASKING.search(part)]
    return random.choice(WITH_A_CLAUSE).format(random.choice(parts)) if parts else ""


def same_in_other_words(question: str, random: Random) -> str:
    """The same, asked by another of the usual phrasings."""
    for pattern, phrasings in IN_OTHER_WORDS:
        if found := pattern.match(question):
            parts = {name: part or "" for name, part in found.groupdict().items()}
            return random.choice(phrasings).format(**parts)
    return ""


def number_in_words(question: str, random: Random) -> str:
    """Small numbers in words as digits, and the other way round."""
    text = question
    for found in reversed(list(_NUMBER.finditer(question))):
        other = IN_WORDS.get(found[0]) or IN_DIGITS.get(found[0].casefold())
        text = _put(text, found, other) if other else text
    return "" if text == question else text[0].upper() + text[1:]


def polite(question: str, random: Random) -> str:
    """The question with a plain politeness."""
    frame = random.choice(POLITE)
    apart = frame.startswith("{}") or frame[-3] in ":.!"
    return frame.format(question if apart else question[0].lower() + question[1:])


def tidied(question: str, random: Random) -> str:
    """As the shipped operators tidy it, with most of the edits."""
    return apply_edits(question, tuple(name for name in EDITS if random.random() < 0.8))


def messy(question: str, random: Random) -> str:
    """As people type it: slips, filler, a story, a telegram, or all in small or large letters."""
    ways: list[Callable[[], str]] = [
        lambda: typos(question, random),
        lambda: embed(question, random.choice(FILLERS)),
        lambda: embed(question, random.choice(STORIES)),
        lambda: question.lower().rstrip("?."),
        lambda: (
            question.upper().rstrip("?.") + random.choice(["!!!", "??", "!!! TELL ME!!!", "?!"])
        ),
        lambda: _telegram(question),
    ]
    return random.choice(ways)()


OTHER: tuple[Change, ...] = (
    another_of_its_kind, opposite, another_number, another_question_word, ends_swapped, name_lost,
    several_of_one, another_rank, one_left_out,
)  # fmt: skip


def _put(text: str, found: re.Match[str], other: str) -> str:
    return text[: found.start()] + other + text[found.end() :]


def _exchanged(question: str, table: str, random: Random) -> str:
    able = [
        (found, [other for other in group if other != word])
        for group in kinds_file()[table]
        for word in group
        if word and (found := re.search(rf"(?<![\w'-]){re.escape(word)}(?![\w'-])", question))
    ]
    if not able:
        return ""
    found, others = random.choice(able)
    return " ".join(_put(question, found, random.choice(others)).split())


def _thing_of(question: str) -> str:
    """The noun phrase that a clear question asks about, as well as it can be told."""
    for pattern in _THINGS:
        if found := pattern.match(question):
            return found["thing"] + (found.groupdict().get("more") or "")
    if which := _WHICH.match(question):
        return f"the {which['rest']}"
    how_many = _HOW_MANY.match(question)
    return how_many["rest"] if how_many else ""


def _telegram(question: str) -> str:
    words = re.findall(r"[\w'-]+", question.lower())
    kept = [word for word in words if word not in LEFT_OUT_OF_TELEGRAMS]
    return " ".join(kept if len(kept) > 2 else words)
