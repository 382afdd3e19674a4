"""Twins that are talked: filler, side stories, run-ons, alarm, a name that will not come."""

from __future__ import annotations

import re

from query_mutator.data.messing.asked import Asked, Kind
from query_mutator.data.messing.phrases import Phrases, lists, words
from query_mutator.data.messing.slips import mistype
from query_mutator.data.messing.wording import (
    ask,
    casual,
    in_full,
    loosened,
    parts,
    spared_in,
    sprinkle,
    uncapitalised,
)

ONE_SLIP = 0.12


def filler(asked: Asked, phrases: Phrases, category: str) -> str:
    """Thinking aloud, with asides and excuses."""
    pick = phrases.random.choice
    asking = ask(asked, phrases, reworded=0.35, turned=0.45)
    asking = sprinkle(in_full(asked, asking), phrases, pick((2, 2, 3, 3)))
    asking = re.sub(
        r", (?=wh(?!.*, wh))", lambda _: f", {phrases.say('talk', 'turn')} ", asking, count=1
    )
    asking = re.sub(
        r"^(what|which|who)\b", lambda m: f"{phrases.say('talk', 'turn')} {m[0]}", asking
    ) if phrases.chance(0.4) else asking  # fmt: skip
    asking = re.sub(
        r"\b(is|are|was) (?=the |a )",
        lambda m: f"{m[0]}{phrases.say('talk', 'soft')} " if phrases.chance(0.35) else m[0],
        asking, count=1,
    )  # fmt: skip
    said = f"{phrases.say('talk', 'opening')}, {asking}"
    if phrases.chance(0.4):
        said = f"{phrases.say('talk', 'opening')}, {said}"
    for share in (0.85, 0.3):
        if phrases.chance(share):
            said += f", {phrases.say('talk', 'closing')}"
    if phrases.chance(0.7):
        said = re.sub(r"\b(what|that|there|who)s\b", r"\1's", said)
    else:
        said = re.sub(r"(?<=\w)'(?=\w)", "", said)
    said = said if phrases.chance(0.2) else _lower(said)
    if phrases.chance(0.8):
        said = said.replace('"', "")
    said = re.sub(r",(?: ,)+", ",", said).replace(",,", ",")
    return said + ("?" if phrases.chance(0.38) else "")


def story(asked: Asked, phrases: Phrases, category: str) -> str:
    """A side story, then the question, and perhaps something after."""
    scene = _scene(phrases, category)
    if phrases.chance(0.65):
        scene += f" {phrases.say('scenes', 'link')} {phrases.say('scenes', 'beat')}"
    asks = phrases.say("scenes", "asks")
    asking = _no_order(in_full(asked, ask(asked, phrases, reworded=0.45, turned=0.25)))
    said = f"{scene}{'.' if phrases.chance(0.8) else ','} {asks} {asking}".replace("  ", " ")
    if phrases.chance(0.3):
        said += f"{phrases.random.choice(['. ', ', ', '? '])}{phrases.say('scenes', 'after')}"
    elif phrases.chance(0.15):
        said += "?"
    return _with_a_slip(casual(said, phrases), asked, phrases)


def runon(asked: Asked, phrases: Phrases, category: str) -> str:
    """A story that comes to its question without a breath."""
    pieces = [_scene(phrases, category), phrases.say("scenes", "beat")]
    if phrases.chance(0.35):
        pieces.append(phrases.say("scenes", "beat"))
    told = " and ".join(re.sub(r",? (?=and\b)|,", " ", piece) for piece in pieces)
    name = f"runon_{asked.kind.value}{'_many' if asked.plural else ''}"
    if phrases.has("scenes", name) and not asked.plural and not asked.past and phrases.chance(0.55):
        ending = phrases.say("scenes", name, **parts(asked))
    else:
        asking = _no_order(in_full(asked, ask(asked, phrases, reworded=0.5, turned=0.0), " and "))
        ending = f"{phrases.say('scenes', 'comes_to')} {asking}"
    said = casual(re.sub(r",(?!\d)(?! \d)", "", f"{told} {ending}"), phrases)
    if phrases.chance(0.6):
        said = re.sub(r"\bi\b", "I", said)
    return _with_a_slip(said, asked, phrases)


def alarm(asked: Asked, phrases: Phrases, category: str) -> str:
    """Harmless things in words of alarm."""
    near = f"alarm_on_{category}"
    near = near if phrases.has("urgent", near) and phrases.chance(0.75) else "alarm"
    opening = phrases.say("urgent", near)
    if phrases.chance(0.3):
        opening += phrases.random.choice((", ", "!! ", " and ")) + phrases.say("urgent", "alarm")
    asking = in_full(asked, ask(asked, phrases, reworded=0.45, turned=0.15))
    opening = opening if phrases.chance(0.2) else _lower(opening)
    said = casual(asking, phrases)
    if phrases.chance(0.2):
        said += (
            f"{phrases.random.choice((', ', '!! ', '?? '))}{phrases.say('urgent', 'alarm_after')}"
        )
    mark = phrases.random.choice(("", "", "", "", "", "", "?", "??"))
    opening = opening.rstrip("!") if phrases.chance(0.3) else opening
    return _with_a_slip(
        f"{opening}{phrases.say('urgent', 'alarm_join')}{said}{mark}", asked, phrases
    )


def forgotten(asked: Asked, phrases: Phrases, category: str) -> str | None:
    """What is asked for by what it is, because its name does not come."""
    if by_name := _without_the_name(asked, phrases):
        return by_name
    thing = asked.described
    if not thing or asked.context or re.search(r'\d+ |"|^half', thing):
        return None
    if asked.kind is Kind.IS and not re.search(r"\b(?:that|with|in|on|to)\b", thing):
        return None
    person = (
        asked.kind in (Kind.WHO, Kind.WHO_IS)
        or re.match(r"an? (?:young )?(?:person|worker|doctor)", thing)
        or not words("people").isdisjoint(asked.noun.split())
    )
    said = {**parts(asked), "thing": _informal(thing, asked.plural, phrases)}
    manner = "person" if person else "plural" if asked.plural else "thing"
    who = person and asked.kind is not Kind.CALLED
    tail = "tail_who" if who else "tail"
    lead = phrases.say("forgotten", "lead", **said)
    joint = phrases.random.choice((", ", ", ", ".. "))
    middle, end = phrases.say("forgotten", manner, **said), phrases.say("forgotten", tail, **said)
    text = f"{lead} {middle}{joint}{end}"
    text = re.sub(r",?\.{2,},?", "..", text)
    return casual(text, phrases).replace("'", "")


def _without_the_name(asked: Asked, phrases: Phrases) -> str | None:
    """The question with a name in it described, where the name is not what is asked for."""
    names: dict[str, list[str]] = lists("forgotten")["names"]
    if asked.context or phrases.chance(0.25):
        return None
    for name, ways in names.items():
        found = re.search(
            rf'(?:the (?:novel|play|fairy tale) )?"?\b{re.escape(name)}\b"?', asked.sentence
        )
        if found:
            before = re.sub(
                r"\ba (young|baby|female) $", r"a \1 one of ", asked.sentence[: found.start()]
            )
            before = re.sub(r"\b(?:an?|the|standard|live) $", "", before)
            sentence = before + phrases.random.choice(ways) + asked.sentence[found.end() :]
            sentence = loosened(uncapitalised(sentence), phrases)
            gone = phrases.say("forgotten", "gone")
            whole = f"{gone}, {sentence}" if phrases.chance(0.25) else f"{sentence}, {gone}"
            return casual(whole if phrases.chance(0.7) else sentence, phrases).replace('"', "")
    return None


def _informal(thing: str, plural: bool, phrases: Phrases) -> str:
    if phrases.chance(0.5):
        pointing = ("those ", "these ") if plural else ("that ", "this ")
        thing = re.sub(r"^the ", pointing[0] if phrases.chance(0.7) else pointing[1], thing)
    return re.sub(r"\bthat is\b", "thats", thing) if phrases.chance(0.5) else thing


def _no_order(asking: str) -> str:
    """The question where it was an order, which would not go on from "I need to know"."""
    return re.sub(r"^(?:name|tell me the name of) (?=the |an? )", "whats the name of ", asking)


def _scene(phrases: Phrases, category: str) -> str:
    near = f"on_{category}"
    return phrases.say(
        "scenes", near if phrases.has("scenes", near) and phrases.chance(0.7) else "anywhere"
    )


def _lower(text: str) -> str:
    return re.sub(r"\b(?!US\b)\w+", lambda match: match[0].lower(), text)


def _with_a_slip(text: str, asked: Asked, phrases: Phrases) -> str:
    """The text, in some cases with one word mistyped."""
    if not phrases.chance(ONE_SLIP):
        return text
    words = text.split(" ")
    places = [i for i, word in enumerate(words) if re.fullmatch(r"[a-z]{4,}", word)]
    if places and text.count('"') == 0:
        place = phrases.random.choice(places)
        spared = spared_in(f"{asked.context} {asked.sentence}")
        words[place] = mistype(words[place], spared, phrases.random).replace(" ", "")
    return " ".join(words)
