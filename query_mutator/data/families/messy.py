"""Makes clear questions messy: slips of the keyboard, filler, stories that run on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random

SLIPS = 2
REAL_WORDS = {
    "three", "thre", "hree", "thee", "tree", "here", "may", "man", "any", "men", "form", "from",
    "dose", "minuets", "moth", "moths", "mouths", "mounts", "fiend", "shred", "cots", "eras",
    "bags", "beds", "paring", "filed", "trial", "ties", "pant", "paces", "sets", "sats",
}  # fmt: skip
"""What a slip must not make of a word."""
UNITS = frozenset(
    {
        "days", "weekday", "week", "month", "months", "leap", "year", "years", "date", "percent",
        "dollars", "euros", "meters", "kilometers",
    }
)  # fmt: skip
"""What no slip hits, besides what fills in a phrasing and what is counted."""
OPENERS = frozenset({"what", "which", "there", "express", "convert", "change", "name"})

FILLERS = (
    "hi there, hope you are well, i was just wondering, {}, thanks so much in advance",
    "so um yeah {} like you know",
    "ok so basically, and sorry if this is silly, {}",
    "hmm let me see how to put this, well, {}, if that makes sense",
    "hey hey, honestly just out of curiosity, {} lol",
    "right, so, uh, {}, please and thank you, no rush at all",
    "i mean like, well, you know, {}, just asking",
    "good morning dear assistant, would you be so kind and help me, {}, many thanks",
    "erm not sure how to ask this but {} haha",
    "not gonna lie i should know this, anyway, {}, cheers",
    "sooo yeah, um, actually, {}, whenever you have a moment",
    "random thought, sort of, kind of, {}, yeah thats it thats the question",
    "well well, as i was saying, uh, {}, hope thats ok to ask",
    "umm ok, so like, basically, {} i guess",
)
STORIES = (
    "we were late for the bus and my phone was dead and it rained all day, anyway, quick one, {}",
    "my neighbor came over about the fence and then we had coffee and talked for ages, anyway, {}",
    "i was in the attic and found my old school books and got lost in them, and one page asks, {}",
    "the kids are home and the soup boiled over and somebody lost a shoe, anyway, my question, {}",
    "i started a puzzle last night and the cat sat on it and i gave up, different question, {}",
    "my cousin is visiting and she loves quizzes and the radio is too loud, and now she asks, {}",
    "the train stopped in the middle of nowhere and we started a quiz, and the next one is, {}",
    "i went swimming but the pool was closed and i sat on a bench for an hour, anyway, {}",
    "we painted the kitchen and it took forever and everything smells of paint, but quick one, {}",
    "grandpa is telling his stories again and the tea went cold, and out of nowhere he asks, {}",
    "i am at the library and the printer is stuck and the line is long, and my homework says, {}",
    "the market was packed and i forgot my list and bought way too many carrots, but anyway, {}",
    "my sister took my bike and brought it back all muddy and we laughed, and my teacher asks, {}",
    "i had a strange dream about an owl that taught a class and never stopped, and it asked, {}",
)


def typos(text: str, random: Random, kept: Iterable[str] = ()) -> str:
    """The text with letters swapped or dropped in a word or two.

    Never in names, numbers, units, what is `kept` and what "how many" asks for.
    """
    counted = re.findall(r"how many ([a-z]+)", text, re.IGNORECASE)
    spared = {*UNITS, *counted, *(word for phrase in kept for word in phrase.split())}
    words = text.split(" ")
    able = [i for i, word in enumerate(words) if _may_slip(word) and _bare(word) not in spared]
    for index in random.sample(able, min(SLIPS, len(able))):
        words[index] = _slip(words[index], random)
    return " ".join(words).lower().rstrip(".?")


def embed(text: str, frame: str) -> str:
    """The text as one clause of a filler or a story."""
    clause = re.sub(r"[.?]$", "", text).replace("...", "how many").replace(". ", ", ").lower()
    return frame.format(clause)


def _may_slip(word: str) -> bool:
    return bool(re.fullmatch(r"[a-z]{4,}[.,:?]?", word)) or word.lower() in OPENERS


def _slip(word: str, random: Random) -> str:
    letters = _bare(word)
    inner = range(1, len(letters) - 1)
    slips = [letters[:i] + letters[i + 1] + letters[i] + letters[i + 2 :] for i in inner]
    if len(letters) > 4:
        slips += [letters[:i] + letters[i + 1 :] for i in inner]
    able = [slip for slip in slips if slip != letters and slip.lower() not in REAL_WORDS]
    return random.choice(able or [letters]) + word[len(letters) :]


def _bare(word: str) -> str:
    return word.rstrip(".,:?")
