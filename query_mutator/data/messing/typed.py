"""Twins by hasty fingers: slips, spelling by ear, telegrams, chat and shouting."""

from __future__ import annotations

import re

from query_mutator.data.messing.asked import Asked, Kind
from query_mutator.data.messing.phrases import Phrases, lists, words
from query_mutator.data.messing.slips import mistype, spell_by_ear
from query_mutator.data.messing.wording import ask, casual, in_full, parts, spared_in, uncapitalised

BY_EAR_TOO, SHARE_BY_EAR = 0.4, 0.55
MARKED = (", ", " = ", " - ", ", ", "... ")
NUMBERED = re.compile(r"\d|\bhow (?:many|much)\b", re.IGNORECASE)


def typos(asked: Asked, phrases: Phrases, category: str) -> str:
    """Typed in a hurry: most longer words with a slip."""
    text = in_full(asked, ask(asked, phrases, reworded=0.25, turned=0.12), " , ")
    typed = casual(text, phrases)
    if phrases.chance(0.2):
        typed = typed.replace(",", " ,").replace("  ", " ")
    spared = spared_in(f"{asked.context} {asked.sentence}")
    by_ear = SHARE_BY_EAR if phrases.chance(BY_EAR_TOO) else 0.0
    return mistype(typed, spared, phrases.random, by_ear)


def phonetic(asked: Asked, phrases: Phrases, category: str) -> str:
    """Written as it sounds."""
    text = in_full(asked, ask(asked, phrases, reworded=0.35, turned=0.05), ", ")
    spared = spared_in(asked.context + " " + asked.sentence)
    return spell_by_ear(casual(text, phrases).replace("-", " "), spared, phrases.random)


def telegram(asked: Asked, phrases: Phrases, category: str) -> str:
    """A few words, the small ones left out."""
    text = casual(_telegram(asked, phrases).replace('"', ""), phrases)
    text = " ".join(re.sub(r"[,:;](?!\d)", "", text).split())
    if match := re.fullmatch(r"(.+)(?<!english) (word|term|name|which|what)", text):
        if phrases.chance(0.3):
            marks = phrases.random.choice(MARKED), phrases.random.choice(("", "?", "??"))
            text = f"{match[1]}{marks[0]}{match[2]}{marks[1]}"
    elif phrases.chance(0.15):
        text += phrases.random.choice(("?", "??", " = ?"))
    return text


def chat(asked: Asked, phrases: Phrases, category: str) -> str:
    """Thumbs on a telephone: letters for words, something before and after."""
    numbered = bool(NUMBERED.search(f"{asked.context} {asked.sentence}"))
    asking = casual(in_full(asked, ask(asked, phrases)), phrases).replace("'", "")
    shortened = _shortened(asking, phrases, numbered)
    before, after = _around(phrases, "before", numbered), _around(phrases, "after", numbered)
    if phrases.chance(0.4):
        after = f"{after} {_around(phrases, 'after', numbered)}".strip()
    if before and not before.endswith((" but", " so")):
        before += phrases.random.choice([",", ",", "", "..", " -"])
    joint = phrases.random.choice([" ", ", ", "?? ", "? ", " ", ", "]) if after else ""
    return f"{before} {shortened}{joint}{after}".strip()


def shouting(asked: Asked, phrases: Phrases, category: str) -> str:
    """In capitals, with marks, and urging."""
    marks = phrases.say("urgent", "ask_marks")
    asking = in_full(asked, ask(asked, phrases, reworded=0.4, turned=0.15), "! ")
    asking = re.sub(r"(?<=[a-z])'(?=[a-z])", "", asking)
    if phrases.chance(0.6):
        asking = re.sub(
            r", (?=wh|how)", phrases.random.choice(["!! ", ", ", "! "]), asking, count=1
        )
    urges = [phrases.say("urgent", phrases.random.choice(["shout", "shout_why"])) for _ in range(2)]
    after = "".join(
        f" {urge}{phrases.say('urgent', 'marks')}"
        for urge in urges[: phrases.random.choice([1, 1, 2])]
    )
    if phrases.chance(0.2):
        return f"{urges[1]}{phrases.say('urgent', 'marks')} {asking}{marks}".upper()
    return f"{asking}{marks}{after}".upper()


def _around(phrases: Phrases, name: str, numbered: bool) -> str:
    """What comes before or after, without a digit where the question has numbers."""
    said = phrases.say("short", name)
    while numbered and re.search(r"\d", said):
        said = phrases.say("short", name)
    return said


def _telegram(asked: Asked, phrases: Phrases) -> str:
    pick = phrases.random.choice
    if asked.context:
        return f"{_bare(asked.context)} {_bare(asked.sentence)}"
    if asked.kind in (Kind.CALLED, Kind.NAMED, Kind.WHEN):
        thing = parts(asked)["clause"] if asked.kind is Kind.WHEN else asked.thing
        tails = (
            "name",
            "called what",
            "called",
            "word",
            "name of it",
            "name",
            "word",
            "term",
            "word for it",
            "english word",
        )
        return f"{_bare(thing)} {pick(tails)}"
    if asked.kind is Kind.IS:
        if match := re.fullmatch(r"the ([\w -]+?) (?:of|for) (?:the word )?([^,]+)", asked.thing):
            of = pick(
                (f"{match[2]} {match[1]}", f"{match[1]} {match[2]}", f"{match[2]} {match[1]} what")
            )
            return _bare(of) if " of " not in match[2] else _bare(f"{match[1]} of {match[2]}")
        return _bare(asked.thing)
    if asked.kind is Kind.WHICH:
        return (
            _bare(f"{asked.noun} {asked.rest}")
            + " "
            + pick(("which", "name", "which one", "what", ""))
        )
    if asked.kind is Kind.WHICH_DO:
        rest = re.sub(r"^(?:you|we|I|people) (?:use to |usually )?", "", asked.rest)
        return _bare(f"{asked.noun} {rest}") + " " + pick(("which", "name", "what", ""))
    if asked.kind in (Kind.WHO, Kind.WHO_IS):
        said = _bare(asked.rest or asked.thing)
        return pick((f"who {said}", f"{said} who", f"{said} name"))
    if asked.kind is Kind.PLACED:
        where = asked.before_noun in ("in", "on", "at") and pick((True, False))
        preposition = "" if where else f"{asked.before_noun} "
        return f"{_bare(asked.rest)} {preposition}which {_bare(asked.noun)}"
    if asked.kind is Kind.SHORT_FOR:
        return asked.thing + pick(
            (" stands for", " full form", " meaning of letters", " abbreviation of what")
        )
    return _counted(asked.sentence, phrases)


def _counted(sentence: str, phrases: Phrases) -> str:
    """`How many N are in X` as `X how many N`."""
    pattern = (
        r"(?:About )?[Hh]ow many (.+?) (?:are there in|are in|are on|does|do|did|must|can) (.+?)"
        r"(?: (?:usually |normally )?have)?(, .+)?"
    )
    if supposed := re.fullmatch(
        r"(?:If|When) you (.+?), (what|which|how many)(.*?) (?:do you|is) (.+)", sentence
    ):
        last = "" if supposed[4] in ("get", "write") else supposed[4]
        return f"{_bare(supposed[1])} {supposed[2]}{supposed[3]} {_bare(last)}"
    match = re.fullmatch(pattern, sentence)
    if not match or phrases.chance(0.25):
        kept = "how many " if sentence.lower().startswith("how many") else ""
        rest = re.sub(r"(?i)^how many ", "", sentence) if kept else sentence
        first = sentence.split()[0].lower()
        opening = f"{first} " if first in ("what", "which") else ""
        return kept + ("" if kept else opening) + _bare(rest)
    about = "approx " if sentence.startswith("About") else ""
    return f"{_bare(match[2])}{_bare(match[3] or '')} {about}how many {_bare(match[1])}"


def _bare(text: str) -> str:
    every = uncapitalised(text).replace(". ", " ").rstrip(".").split()
    kept = [
        word
        for before, word in zip(["", *every], every, strict=False)
        if word.strip(",").lower() not in words("small")
        or (len(word) == 1 and word.isupper() and before[:1].isupper())
        or word == "US"
        or (
            word == "which"
            and before in ("in", "on", "at", "for", "through", "around", "from", "to")
        )
        or (word == "you" and before in ("hands", "tells", "gives", "lets", "shows", "gets", "see"))
    ]
    return " ".join(kept)


def _shortened(text: str, phrases: Phrases, numbered: bool) -> str:
    letters: dict[str, str] = lists("short")["letters"]

    def put(match: re.Match[str]) -> str:
        short = letters.get(match[0])
        rare = match[0] in ("the", "that", "your") and not phrases.chance(0.15)
        if short is None or rare or (numbered and short[0].isdigit()) or not phrases.chance(0.7):
            return match[0]
        return short

    return re.sub(r"[a-z]+", put, text)
