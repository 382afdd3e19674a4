"""Puts a question that was taken apart together again, as people ask each other."""

from __future__ import annotations

import re

from query_mutator.data.messing.asked import Asked, Kind
from query_mutator.data.messing.phrases import Phrases, lists, words
from query_mutator.data.messing.slips import Spared
from query_mutator.english.names import capitalise_names

LONG = 9
"""Words of a thing after which "called" would come too late."""
OF_ONESELF = re.compile(
    r"\bdo you (?:use|put|stick|tie|wear|slip|load|strike|climb|flip|dry|normally go)\b|"
    r"\bshould you\b|that you (?:use|put|load|slip|strike|climb)\b"
)
"""What may as well be asked of oneself."""
BOUNDARY = re.compile(
    r"(?<! in)(?<! on)(?<! at)(?<! for)(?<! from)(?<! to)(?<! by)(?<!through)(?<!around)"
    r" (?=(?:that|which|who|with|when|where|from|for|on|in|and|after|between)\b)"
)


def spared_in(question: str) -> Spared:
    """The words of the question that no slip or one at most may hit.

    >>> spared = spared_in('Tom asks: what is the plural of "leaf" in the US?')
    >>> sorted(spared.names), sorted(spared.exact)
    (['tom', 'us'], ['leaf', 'us'])
    """
    quoted = [quote for quote in re.findall(r'"([^"]+)"', question) if quote.count(" ") < 2]
    exact = [word for quote in quoted for word in re.findall(r"[\w'’]+", quote)]
    exact += re.findall(r"\b[A-Z]{2,}\b", question)
    capitals = re.findall(r"(^|[.!?:]\s+)?\b([A-Z][\w'’]*)", question)
    no_names = words("openers")
    names = {word.lower() for start, word in capitals if not start or word.lower() not in no_names}
    lower = {word for word in question.lower().split() if capitalise_names(word) != word}
    return Spared(frozenset(names | lower), frozenset(word.lower() for word in exact))


def parts(asked: Asked) -> dict[str, str]:
    """What fills the gaps of phrases about the question."""
    plural, past = asked.plural, asked.past
    verb = ("were" if past else "are") if plural else ("was" if past else "is")
    noun = re.split(r",| (?:of|with|that|from|in|on|for|below|listing|inside)\b", asked.noun)[0]
    return {
        "thing": asked.thing,
        "noun": asked.noun,
        "rest": asked.rest,
        "head": "one" if plural or "," in asked.noun else noun.split()[-1] if noun else "",
        "is": verb,
        "it": "they" if plural else "it",
        "its": "their" if plural else "its",
        "that": "those" if plural else "that",
        "they_are": "they are" if plural else "its",
        "whats": f"what {verb}" if plural or past else "whats",
        "whos": f"who {verb}" if plural or past else "whos",
        "clause": re.sub(r"^it when ", "", asked.thing),
        "before_noun": asked.before_noun,
        "behind": "" if asked.noun == "year" else asked.before_noun,
        "free": free_order(asked),
    }


def ask(asked: Asked, phrases: Phrases, reworded: float = 0.6, turned: float = 0.3) -> str:
    """The question: as it was, in other words, or with the thing first, in such shares."""
    name = asked.kind.value
    draw = phrases.random.random()
    odd = asked.kind is Kind.PLACED and (
        asked.before_noun not in ("in", "on", "from", "to") or "," in asked.rest
    )
    if odd or asked.kind is Kind.OTHER or draw > reworded + turned:
        return loosened(uncapitalised(asked.sentence), phrases)
    if draw < turned and phrases.has("asks", f"{name}_turned"):
        name += "_turned"
    if asked.plural and phrases.has("asks", f"{name}_many"):
        name += "_many"
    is_long = "," in asked.thing or len(asked.thing.split()) > LONG
    if is_long and phrases.has("asks", f"{name}_long"):
        name += "_long"
    return loosened(phrases.say("asks", name, **parts(asked)).strip(), phrases)


def in_full(asked: Asked, question: str, joint: str = ", ") -> str:
    """The question after what was said before it."""
    context = re.sub(r"[.!?]\s+", joint, re.sub(r"[.!?]$", "", asked.context))
    return f"{uncapitalised(context)}{joint}{question}" if context else question


def uncapitalised(text: str) -> str:
    """The text without the capital of its first word, if that is no name."""
    return text[:1].lower() + text[1:] if text.split(" ")[0].lower() in words("openers") else text


def casual(text: str, phrases: Phrases, capitals: float = 0.0) -> str:
    """The text as people type it: in lower case, without most apostrophes and some quotes."""
    if not phrases.chance(capitals):
        text = re.sub(r"\b(?!US\b)\w+", lambda match: match[0].lower(), text)
    if phrases.chance(0.8):
        text = re.sub(r"(?<=\w)['’](?=\w)", "", text)
    if phrases.chance(0.7):
        text = text.replace('"', "")
    text = re.sub(r"\b([Aa]) (?=[aeio])", r"\1n ", text)
    return " ".join(text.split())


def loosened(text: str, phrases: Phrases) -> str:
    """The text with some of its words as they are spoken."""
    for written, spoken, share in lists("asks")["spoken"]:
        if phrases.chance(share):
            text = re.sub(written, spoken, text, count=1)
    if OF_ONESELF.search(text) and phrases.chance(0.4):
        for written, spoken in (("your own", "my own"), ("your", "my"), ("you", "i")):
            text = re.sub(rf"\b{written}\b", spoken, text)
    return text


def sprinkle(text: str, phrases: Phrases, count: int) -> str:
    """The text with so many asides between its parts, none within quotes."""
    ends = [match.start() for match in re.finditer(r", (?=wh|is |are |tell )", text)]
    last = ends[-1] if ends and ends[-1] > len(text) / 2 else len(text)
    places = [
        match.start()
        for match in BOUNDARY.finditer(text[:last])
        if text[: match.start()].count('"') % 2 == 0 and match.start() > 8
        and not text[match.start() :].startswith(" and a half")
        and not re.match(r" that (?:called|again)?$", text[match.start() :])
        and not re.search(r"[A-Z][\w']*$", text[: match.start()])
    ]  # fmt: skip
    chosen = sorted(phrases.random.sample(places, min(count, len(places))), reverse=True)
    for place in chosen:
        aside = phrases.say("talk", "aside")
        text = f"{text[:place].rstrip(',')}, {aside},{text[place:]}"
    return text


def free_order(asked: Asked) -> str:
    """The question with the auxiliary left out or after its subject."""
    text = asked.rest if asked.kind is Kind.PLACED else uncapitalised(asked.sentence)
    if match := re.fullmatch(r"(.*?)\b(?:does|do) ((?:.+) )(\w+)", text):
        return f"{match[1]}{match[2]}{match[3]}"
    if match := re.fullmatch(r"(.*?)\bdid (.+)", text):
        return f"{match[1]}{match[2]}"
    if match := re.fullmatch(r"(can|should|must) (\w+) (.+)", text):
        return f"{match[2]} {match[1]} {match[3]}"
    if match := re.fullmatch(r"(\w+) (can|should|must|do) (you|I|we|people|birds) (.+)", text):
        auxiliary = "" if match[2] == "do" else f"{match[2]} "
        return f"{match[1]} {match[3]} {auxiliary}{match[4]}"
    participle = r" (?:\w+ed|known|built|held|made|sent|worn|sold|taken)\b.*"
    if match := re.fullmatch(rf"(is|are|was|were) (.+?)({participle})?", text):
        return f"{match[2]} {match[1]}{match[3] or ''}"
    return text
