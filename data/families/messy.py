"""Makes clear questions messy: slips of the keyboard, filler, stories that run on."""

from __future__ import annotations

import re
from random import Random

SLIPS = 3
REAL_WORDS = {
    "three", "thre", "hree", "thee", "tree", "here", "may", "man", "any", "men", "form", "from",
    "dose", "minuets", "moth", "moths", "mouths", "mounts", "fiend", "shred", "cots", "eras",
    "bags", "beds", "paring",
}  # fmt: skip
"""What a slip must not make of a word."""
OPENERS = frozenset({"what", "which", "there", "express", "convert"})

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
    "we were late for the bus and my phone was dead and it rained the whole way home so {}",
    "my neighbor came over about the fence and then we had coffee and talked for ages, anyway {}",
    "i was cleaning the attic and found my old school books and got completely lost in them and {}",
    "so the kids are home today and the soup boiled over and somebody lost a shoe, anyway {}",
    "i started a puzzle last night and the cat sat on it and i gave up and went to bed but {}",
    "my cousin is visiting and she loves quizzes and the radio was on too loud but anyway {}",
    "the train stopped in the middle of nowhere and everyone got bored and started guessing so {}",
    "i wanted to go swimming but the pool was closed so i sat on a bench and ate an apple and {}",
    "we painted the kitchen and it took forever and now everything smells of paint, anyway {}",
    "grandpa was telling his stories again and the tea went cold and nobody minded, so anyway {}",
    "i am at the library and the printer is stuck and there is a long line behind me and {}",
    "the market was packed and i forgot my list and bought way too many carrots, but anyway {}",
    "my sister borrowed my bike and brought it back all muddy and now we are laughing and {}",
    "i had the strangest dream about an owl that taught a class and would not stop, so anyway {}",
)


def typos(text: str, random: Random) -> str:
    """The text with letters swapped or dropped in a few words, never in names or numbers."""
    words = text.split(" ")
    able = [index for index, word in enumerate(words) if _may_slip(word)]
    for index in random.sample(able, min(SLIPS, len(able))):
        words[index] = _slip(words[index], random)
    return " ".join(words).lower().rstrip(".?")


def embed(text: str, frame: str) -> str:
    """The text as one clause of a filler or a story."""
    clause = re.sub(r"[.?]$", "", text).replace("...", "what").replace(". ", ", ").lower()
    return frame.format(clause)


def _may_slip(word: str) -> bool:
    return bool(re.fullmatch(r"[a-z]{4,}[.,:?]?", word)) or word.lower() in OPENERS


def _slip(word: str, random: Random) -> str:
    letters = word.rstrip(".,:?")
    inner = range(1, len(letters) - 2)
    slips = [letters[:i] + letters[i + 1] + letters[i] + letters[i + 2 :] for i in inner]
    if len(letters) > 4:
        slips += [letters[: i + 1] + letters[i + 2 :] for i in inner]
    able = [slip for slip in slips if slip != letters and slip.lower() not in REAL_WORDS]
    return random.choice(able or [letters]) + word[len(letters) :]
