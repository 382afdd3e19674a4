"""Changes of clear questions: what asks the same in other words, and what asks something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from query_mutator.data.families.messy import FILLERS, STORIES, embed, typos
from query_mutator.objectives.drift.wording import kinds_file
from query_mutator.operators.edits import EDITS, apply_edits

Change = Callable[[str, Random], str]
"""A question made into another one; "" where it cannot be."""

DIGITS = dict(
    zip(
        "two three four five six seven eight nine ten eleven twelve twenty thirty".split(),
        "2 3 4 5 6 7 8 9 10 11 12 20 30".split(),
        strict=True,
    )
)
_NUMBER = re.compile(rf"\b(?:\d[\d,]*(?:\.\d+)?|{'|'.join(DIGITS)})\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-zA-Z]+(?: [A-Z][a-zA-Z]+)*")
_CALLED = re.compile(
    r"^What (?P<be>is|are) (?P<thing>.+?) called(?P<more>| (?:that|which|when|in|of|if|while)\b.+)\?$"
)
_CALL = re.compile(r"^What do (?:you|we|people) call (?P<thing>.+)\?$")
_WHICH = re.compile(r"^(?P<before>|In |On |To |From |Of |At |With )[Ww](?:hich|hat) (?P<thing>\w+.*)\?$")
_WHO = re.compile(r"^Who (?P<does>(?!is\b|are\b|was\b|were\b|did\b|can\b)\w+.*)\?$")
_IS = re.compile(r"^(?:What|Who) (?:is|are|was|were) (?P<thing>(?:the|a|an) .+)\?$")
_HOW_MANY = re.compile(r"^How (?:many|much) (?P<thing>.+)\?$")
_NAME_THE = re.compile(r"^Name (?P<thing>the .+)\.$")
_AUXILIARY = re.compile(r"^(?P<thing>[\w' -]+?) (?P<rest>(?:is|are|was|were|do|does|did|can|has|have|will|would|should)\b.*)$")

ABOUT_A_THING = (
    "How much does {} cost?", "Where can I buy {}?", "Who invented {}?", "When was {} invented?",
    "What is {} made of?", "What is {} used for?", "Why is it important to know {}?", "How do you make {}?",
    "How do I get rid of {}?", "How do you clean {}?", "How do I draw {}?", "How big is {}?", "Is {} dangerous?",
    "Where does {} come from?", "How long does {} last?", "What color is {}?", "How do I choose {}?",
    "What happens to {}?", "Where do you find {}?", "Why do people like {}?", "How old is {}?",
    "How many kinds of {} are there?", "What does {} look like?", "How does {} work?", "Who uses {}?",
    "What is the history of {}?", "What is the opposite of {}?", "Can you show me {}?", "What should I do with {}?",
    "How often do people need {}?", "Why is {} called that?", "When do you need {}?", "What is {}?",
    "Who was the first person with {}?", "Which country does {} come from?", "What is the biggest problem with {}?",
)  # fmt: skip
WITH_A_CLAUSE = (
    "Why {}?", "How can I tell whether {}?", "Is it true that {}?", "What should I do when {}?", "When {}?",
    "How often does it happen that {}?", "How many people say that {}?", "Who says that {}?", "What if {}?",
    "How do I stop it when {}?", "Where {}?",
)  # fmt: skip
POLITE = (
    "Could you please tell me: {}", "Please tell me, {}", "{} Thank you!", "I would like to know: {}", "{} Please answer.",
    "Can you tell me {}", "Question: {}", "Hello! {}", "I have a question. {}", "Do you know {}", "Quick question: {}", "{} Thanks in advance.",
)  # fmt: skip


def another_of_its_kind(question: str, random: Random) -> str:
    return _exchanged(question, "kinds", random)


def opposite(question: str, random: Random) -> str:
    return _exchanged(question, "opposites", random)


def alike(question: str, random: Random) -> str:
    return _exchanged(question, "alike", random)


def _exchanged(question: str, table: str, random: Random) -> str:
    able = []
    for group in kinds_file()[table]:
        for word in group:
            if word and (found := re.search(rf"(?<![\w'-]){re.escape(word)}(?![\w'-])", question)):
                able.append((found, [other for other in group if other != word]))
    if not able:
        return ""
    found, others = random.choice(able)
    text = question[: found.start()] + random.choice(others) + question[found.end() :]
    return " ".join(text.split())


def another_number(question: str, random: Random) -> str:
    found = list(_NUMBER.finditer(question))
    if not found:
        return ""
    chosen = random.choice(found)
    digits = DIGITS.get(chosen[0].casefold(), chosen[0]).replace(",", "")
    if "." in digits:
        other = digits[::-1] if digits[::-1] != digits else digits + "1"
    else:
        number = int(digits)
        able = {number + 1, number + 10, number * 10, number * 2, abs(number - 1), random.randint(2, 99), int(digits[::-1])}
        other = str(random.choice(sorted(able - {number, 0, 1} or {number + 1})))
    if not chosen[0][0].isdigit():
        by_digits = {value: key for key, value in DIGITS.items()}
        other = by_digits.get(other, other)
    return question[: chosen.start()] + other + question[chosen.end() :]


def number_in_words(question: str, random: Random) -> str:
    by_digits = {value: key for key, value in DIGITS.items()}
    able = [m for m in _NUMBER.finditer(question) if m[0] in by_digits or m[0].casefold() in DIGITS]
    if not able:
        return ""
    text = question
    for found in reversed(able):
        word = by_digits.get(found[0]) or DIGITS[found[0].casefold()]
        text = text[: found.start()] + word + text[found.end() :]
    return text[0].upper() + text[1:]


def names_in(question: str) -> list[str]:
    """The names of a question, but for one that begins it."""
    return [match[0] for match in _NAME.finditer(question)]


def another_name(question: str, random: Random, names: Sequence[str] = ()) -> str:
    found = list(_NAME.finditer(question))
    if not found or not names:
        return ""
    chosen = random.choice(found)
    other = random.choice(names)
    return "" if other == chosen[0] else question[: chosen.start()] + other + question[chosen.end() :]


def several_of_one(question: str, random: Random) -> str:
    """`a spider` as `three spiders`."""
    able = list(re.finditer(r"\b(?:a|an|one)\s+(?:standard |single |adult )?(?P<thing>[a-z]{3,})\b", question))
    if not able:
        return ""
    found = random.choice(able)
    number = random.choice(["two", "three", "four", "five", "2", "3", "10", "a hundred"])
    plural = found["thing"] + ("es" if found["thing"][-1] in "sx" else "s")
    return f"{question[: found.start()]}{number} {plural}{question[found.end() :]}"


def another_rank(question: str, random: Random) -> str:
    """`the largest` as `the second largest`, `the alphabet` as `the first half of the alphabet`."""
    superlatives = list(re.finditer(r"\b(?:the|is|Which \w+ is the|'s) (?=(?:\w+est|most \w+)\b)", question))
    if superlatives and random.random() < 0.8:
        found = random.choice(superlatives)
        rank = random.choice(["second ", "third ", "second-", "tenth "])
        return question[: found.end()] + rank + question[found.end() :]
    things = list(re.finditer(r"\b(?:of|in|on) (?=the )", question))
    if not things:
        return ""
    found = random.choice(things)
    part = random.choice(["half of ", "the first half of ", "a third of ", "the second part of "])
    return question[: found.end()] + part + question[found.end() :]


def one_left_out(question: str, random: Random) -> str:
    """A series without one of its numbers."""
    found = list(re.finditer(r"(?:, | and )\d+\b", question))
    if not found:
        return ""
    chosen = random.choice(found)
    return question[: chosen.start()] + question[chosen.end() :]


def ends_swapped(question: str, random: Random) -> str:
    """`from A to B` as `from B to A`, `A minus B` as `B minus A`."""
    patterns = (
        r"(?P<a>\w+) (?P<mid>minus|divided by|into|from|before|after|than|to|over|under|inside|eats?|chases?|turns into|in) (?:a |an |the )?(?P<b>\w+)",
    )
    able = [m for pattern in patterns for m in re.finditer(pattern, question) if len(m["a"]) > 3 or m["a"].isdigit()]
    able = [m for m in able if m["a"][0].islower() == m["b"][0].islower() and (len(m["b"]) > 3 or m["b"].isdigit())]
    if not able:
        return ""
    m = random.choice(able)
    return question[: m.start("a")] + m["b"] + question[m.end("a") : m.start("b")] + m["a"] + question[m.end("b") :]


def name_lost(question: str, random: Random) -> str:
    """A short question without the name, the number or the end that it hangs on."""
    text = question.rstrip("?.")
    tails = list(re.finditer(r" (?:of|in|from|by|for|on|at|between|during|after|before|with) (?:the |a |an )?[\w'\" -]+$", text))
    short = len(text.split()) < 9
    tails = [tail for tail in tails if short or re.search(r"[A-Z0-9]", tail[0])]
    if not tails:
        return ""
    cut = random.choice(tails)
    return text[: cut.start()] + "?" if len(text[: cut.start()].split()) > 3 else ""


def thing_of(question: str) -> str:
    """The noun phrase that a clear question asks about, as well as it can be told; or ""."""
    for pattern in (_CALLED, _CALL, _IS, _NAME_THE):
        if found := pattern.match(question):
            more = found.groupdict().get("more") or ""
            return found["thing"] + more
    if found := _WHICH.match(question):
        return f"the {found['thing']}"
    if found := _HOW_MANY.match(question):
        return found["thing"]
    if found := _WHO.match(question):
        return f"the person who {found['does']}"
    return ""


def another_question_word(question: str, random: Random) -> str:
    thing = thing_of(question)
    if _HOW_MANY.match(question) and random.random() < 0.7:
        rest = question.split(" ", 2)[2]
        return f"{random.choice(['Which', 'What kind of', 'Where are', 'Why are there'])} {rest}"
    which = _WHICH.match(question)
    if which and (split := _AUXILIARY.match(which["thing"])) and random.random() < 0.6:
        starts = ["When", "Why", "How", "How often", "How long", "Where", "Since when"]
        if split["rest"].split()[0] in ("is", "are", "was", "were", "do", "does", "did") and which["before"]:
            return f"{random.choice(starts)} {split['rest']}?"
        starts = ["Why does the", "When does the", "How does the", "Where is the", "How big is the", "How many", "Who owns the", "How old is the"]
        return f"{random.choice(starts)} {which['thing']}?"
    if found := _WHO.match(question):
        start = random.choice(["When did someone", "Why did someone", "How did someone", "Where did someone"])
        return random.choice([f"{start} {found['does']}?", f"When was it that somebody {found['does']}?", f"Why did that person who {found['does']} do it?", f"What {found['does']}?", f"How many people {found['does']}?"])
    if not thing:
        return ""
    if random.random() < 0.5:
        noun = re.split(r" (?:that|which|when|who|in|of|on|with|while|after|before|if|where)\b", thing)[0]
        thing = random.choice([thing, noun])
    return random.choice(ABOUT_A_THING).format(thing)


def about_an_aside(question: str, random: Random) -> str:
    """A question about a clause of a messy question that is not what it asks."""
    parts = [part.strip(" .?!") for part in re.split(r"[,.!?]+|\band\b|\bbut\b|\bso\b|\bbecause\b", question)]
    asked = re.compile(r"\b(?:what\w*|which|who|where|when|how|call\w*|name|word|wat|wich|whats)\b", re.IGNORECASE)
    parts = [part for part in parts if 3 <= len(part.split()) <= 12 and not asked.search(part)]
    if not parts:
        return ""
    return random.choice(WITH_A_CLAUSE).format(random.choice(parts))


def same_in_other_words(question: str, random: Random) -> str:
    if found := _CALLED.match(question):
        thing = found["thing"] + found["more"]
        return random.choice([f"What do you call {thing}?", f"What is the name of {thing}?", f"Which word means {thing}?", f"What is the word for {thing}?", f"How do you call {thing}?", f"What is the term for {thing}?", f"By what name do people know {thing}?"])
    if found := _CALL.match(question):
        thing = found["thing"]
        return random.choice([f"What is {thing} called?", f"What is the name for {thing}?", f"Which word is used for {thing}?", f"What is the term for {thing}?", f"Name {thing}."])
    which = _WHICH.match(question)
    if which and which["before"]:
        split = _AUXILIARY.match(which["thing"])
        if split:
            return f"{split['rest'].capitalize() if False else 'What is the ' + split['thing']} {which['before'].strip().lower()} which {split['rest']}?"
    if which and not which["before"]:
        first = which["thing"].split()
        if len(first) > 3 and not _AUXILIARY.match(which["thing"]):
            return random.choice([f"What is the {which['thing']}?", f"Name the {which['thing']}.", f"What {which['thing']}?", f"What is the name of the {which['thing']}?"])
        return question.replace("Which ", "What ", 1) if question.startswith("Which ") else question.replace("What ", "Which ", 1)
    if found := _NAME_THE.match(question):
        return random.choice([f"What is {found['thing']} called?", f"What is {found['thing']}?", f"What is the name of {found['thing']}?"])
    if found := _WHO.match(question):
        return random.choice([f"Which person {found['does']}?", f"What is the name of the person who {found['does']}?", f"Who was it that {found['does']}?"])
    if found := _HOW_MANY.match(question):
        split = re.match(r"(\w+(?: \w+)?) (are|is|were) (?:there )?(.+)", found["thing"])
        if split:
            return f"What is the number of {split[1]} {split[3]}?"
        return f"What number of {found['thing']}?"
    if found := _IS.match(question):
        thing = found["thing"]
        of = re.match(r"(?:the )?(\w+(?: \w+)?) of (.+)", thing)
        if of:
            owner = of[2]
            return random.choice([f"What is {owner}'s {of[1]}?", f"Which {of[1]} does {owner} have?", f"Tell me the {of[1]} of {owner}.", f"{owner}: what is the {of[1]}?"])
        return f"Tell me what {thing} is."
    return ""


def polite(question: str, random: Random) -> str:
    frame = random.choice(POLITE)
    text = question if frame.startswith("{}") or ":" in frame or "." in frame else question[0].lower() + question[1:]
    return frame.format(text)


def tidied(question: str, random: Random) -> str:
    names = tuple(name for name in EDITS if random.random() < 0.8)
    return apply_edits(question, names)


def messy(question: str, random: Random) -> str:
    """As people type it: slips, filler, a story, or all in small letters."""
    how = random.randrange(6)
    if how == 0:
        return typos(question, random)
    if how == 1:
        return embed(question, random.choice(FILLERS))
    if how == 2:
        return embed(question, random.choice(STORIES))
    if how == 3:
        return question.lower().rstrip("?.")
    if how == 4:
        return question.upper().rstrip("?.") + random.choice(["!!!", "??", "!!! TELL ME!!!", "?!"])
    return telegram(question)


def telegram(question: str) -> str:
    left_out = {"is", "are", "the", "a", "an", "do", "does", "did", "you", "in", "of", "to", "that", "was", "were", "it", "what", "which"}
    kept = [word for word in re.findall(r"[\w'-]+", question) if word.casefold() not in left_out]
    return " ".join(kept).lower() if len(kept) > 2 else question.lower()


SAME: tuple[Change, ...] = (same_in_other_words, alike, polite, number_in_words, tidied)
OTHER: tuple[Change, ...] = (
    another_of_its_kind, opposite, another_number, another_question_word, ends_swapped, name_lost,
    several_of_one, another_rank, one_left_out,
)  # fmt: skip
