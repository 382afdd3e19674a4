"""Takes a clear question apart, so that it can be put in another way."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

VERBS_FILE = Path(__file__).with_name("verbs.txt")


class Kind(Enum):
    """Ways of asking; the value names its table in `asks.toml`."""

    CALLED = "called"
    """What is X called: `thing` is X."""
    WHEN = "when"
    """What is it called when X: `thing` is "it when X"."""
    NAMED = "named"
    """What is the name of X: `thing` is X."""
    IS = "is"
    """What is X: `thing` is X."""
    WHO_IS = "who_is"
    """Who is X: `thing` is X."""
    WHICH = "which"
    """Which N does something: `noun` is N, `rest` what it does."""
    WHICH_DO = "which_do"
    """Which N do you do something with: `noun` is N, `rest` what you do."""
    WHO = "who"
    """Who does something: `rest` is what."""
    PLACED = "placed"
    """In which N does something happen: `before_noun` is "in"."""
    SHORT_FOR = "short_for"
    """What does X stand for: `thing` is X."""
    OTHER = "other"


@dataclass(frozen=True)
class Asked:
    """A clear question in its parts."""

    context: str
    """The sentences before the one that asks, or nothing."""
    sentence: str
    """The sentence that asks, without its mark."""
    kind: Kind = Kind.OTHER
    thing: str = ""
    noun: str = ""
    rest: str = ""
    before_noun: str = ""
    plural: bool = False
    past: bool = False

    @property
    def described(self) -> str:
        """What is asked for, as a phrase without a question; nothing where there is none."""
        if self.kind in (Kind.CALLED, Kind.NAMED, Kind.IS, Kind.WHO_IS):
            return self.thing
        if self.kind in (Kind.WHICH, Kind.WHICH_DO):
            return f"the {self.noun} that {self.rest}"
        return f"the person who {self.rest}" if self.kind is Kind.WHO else ""


def take_apart(question: str) -> Asked:
    """The parts of the question.

    >>> take_apart("What is the joint called where the arm meets the trunk?").thing
    'the joint where the arm meets the trunk'
    >>> parts = take_apart("Which bird hunts at night and hoots?")
    >>> parts.kind.name, parts.noun, parts.rest
    ('WHICH', 'bird', 'hunts at night and hoots')
    """
    text = " ".join(question.split())
    start = max((match.end() for match in re.finditer(r"[.!?]\s+(?=[A-Z\d])", text)), default=0)
    if re.search(r"\b(?:St|Mr|Dr|etc)\.\s$", text[:start]):
        start = 0
    context, sentence = text[:start].strip(), re.sub(r"[.?!]$", "", text[start:])
    for read in READERS:
        if parts := read(sentence, context):
            return parts
    return Asked(context, sentence)


def _called(sentence: str, context: str) -> Asked | None:
    if match := re.fullmatch(r"What (?:is|do (?:you|we) call) it(?: called)? (when .+)", sentence):
        return Asked(context, sentence, Kind.WHEN, thing=f"it {match[1]}")
    if match := re.fullmatch(r"What do (?:you|we|people) call (.+)", sentence):
        return Asked(context, sentence, Kind.CALLED, match[1], plural=_many(match[1]))
    if match := re.fullmatch(r"(?:What|Who) (is|are|was|were) (.+?),? called\b(.*)", sentence):
        thing = match[2] + re.sub(r"^ (?=which)", ", ", match[3])
        if thing.startswith("it "):
            return None
        plural, past = match[1] in ("are", "were"), match[1] in ("was", "were")
        return Asked(context, sentence, Kind.CALLED, thing, plural=plural, past=past)
    if match := re.fullmatch(r"Name (the .+|an? .+)", sentence):
        return Asked(context, sentence, Kind.NAMED, match[1])
    if match := re.fullmatch(r"What (?:is|was) the name of (.+)", sentence):
        return Asked(context, sentence, Kind.NAMED, match[1])
    return None


def _is(sentence: str, context: str) -> Asked | None:
    pattern = r"(What|Who|Which) (is|are|was|were) ((?:the|an?) .+|\d+ .+|half .+)"
    match = re.fullmatch(pattern, sentence)
    if not match or re.search(r" (?:made from|short for|in)$", sentence):
        return None
    kind = Kind.WHO_IS if match[1] == "Who" else Kind.IS
    plural, past = match[2] in ("are", "were"), match[2] in ("was", "were")
    return Asked(context, sentence, kind, match[3], plural=plural, past=past)


def _which(sentence: str, context: str) -> Asked | None:
    if not re.match(r"(?:Which|What) (?!is |are |was |were |of |do |does |did |on )", sentence):
        return None
    words = sentence.split()
    if words[1] in verbs() or ":" in sentence or "..." in sentence:
        return None
    for place, word in enumerate(words[2:], 2):
        noun, after = " ".join(words[1:place]), " ".join(words[place + 1 :])
        if word in ("does", "did", "can", "should", "must", "will"):
            return None
        if word == "do":
            return Asked(
                context, sentence, Kind.WHICH_DO, noun=noun, rest=after, plural=_many(noun)
            )
        if word in verbs() or word in ("is", "are", "was", "were", "has", "have", "had"):
            subject_follows = re.match(r"(?:the|an?|most|you|your|it|[A-Z][\w']+) ", after)
            if word in ("is", "are", "was", "were") and subject_follows and not _defines(after):
                return None
            plural = word in ("are", "were", "have") or (
                not word.endswith("s") and word not in ("is", "was", "has") and _many(noun)
            )
            return Asked(
                context,
                sentence,
                Kind.WHICH,
                noun=noun,
                rest=f"{word} {after}".strip(),
                plural=plural,
            )
    return None


def _defines(after: str) -> bool:
    """Whether what follows "which N is" says something of N: "the usual topping of a pizza"."""
    return not re.search(r" (?:in|on|at|from|to|of|by|with|known|made|called)$", after) and bool(
        re.match(
            r"(?:the|an?) (?:\w+ ){0,4}(?:of|in|on|for|that|who|with|to|by|near|around)\b", after
        )
        or re.match(r"(?:the|an?) \w+(?: \w+){0,2}$", after)
    )


def _who(sentence: str, context: str) -> Asked | None:
    match = re.fullmatch(r"Who (\w+) (.+)", sentence)
    if not match or match[1] in ("do", "does", "did", "will"):
        return None
    past = match[1] == "was" or (not match[1].endswith("s") and match[1] not in ("can", "are"))
    return Asked(context, sentence, Kind.WHO, rest=f"{match[1]} {match[2]}", past=past)


def _placed(sentence: str, context: str) -> Asked | None:
    match = re.fullmatch(
        r"(In|On|From|To|At|After|With|By|Into|Off) (?:which|what) "
        r"(.+?) ((?:is|are|was|were|does|do|did|can|should|must) .+)",
        sentence,
    )
    if not match:
        return None
    return Asked(
        context, sentence, Kind.PLACED, noun=match[2], rest=match[3], before_noun=match[1].lower()
    )


def _short_for(sentence: str, context: str) -> Asked | None:
    match = re.fullmatch(
        r"What (?:does|do) (?:the (?:letters|abbreviation) )?(\S+) stand for", sentence
    )
    return Asked(context, sentence, Kind.SHORT_FOR, thing=match[1]) if match else None


READERS: tuple[Callable[[str, str], Asked | None], ...] = (
    _called, _is, _which, _who, _placed, _short_for,
)  # fmt: skip


def _many(noun: str) -> bool:
    """Whether a phrase is in the plural, by its first noun and what stands before it."""
    if re.match(r"(?:an?|one|this) ", noun):
        return False
    after = "of|with|that|which|from|in|on|for|near|at|as|who|to|under|between|listing"
    head = re.split(rf",(?! \w+ \w+(?: on| of|$))| (?:{after})\b", noun)[0]
    return bool(re.search(r"(?<![su])(?<!ga)s$|people$|feet$|teeth$|men$", head))


@cache
def verbs() -> frozenset[str]:
    """What things do, as questions about them say it."""
    return frozenset(VERBS_FILE.read_text(encoding="utf-8").split())
