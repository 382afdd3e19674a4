"""Which kind of answer a question asks for, in which of its clauses, and for which thing."""

from __future__ import annotations

import functools
import re

from query_mutator.objectives.drift.numerals import listed

SAID = {
    "who": "a person", "when": "a time", "where": "a place", "why": "a reason", "many": "a number",
    "cost": "a price", "often": "how often", "long": "a duration", "age": "an age",
    "size": "a measure", "how": "a way to do it", "name": "a name", "what": "a thing",
    "means": "a meaning", "letters": "what letters stand for", "made of": "a material",
    "for": "a purpose", "to do": "what to do", "yes or no": "yes or no", "statement": "nothing",
    "none": "something",
}  # fmt: skip
"""The kinds, and how to speak of them."""
GROUPS = {"who": "thing", "name": "thing", "what": "thing", "means": "thing", "letters": "thing"}
HARD = frozenset(SAID) - GROUPS.keys() - {"none"}
"""Kinds that no other wording of a question leads to."""
SHORT, SHORT_QUESTION = 11, 22
"""Words of a text that asks as a whole, and of one that asks first of all."""
_CLAUSE_WORDS = 9
_NEAR = 40

_STANDARD = {
    "what": "what wat wha wot wut waht wats waths wath whats what's wat's wots",
    "which": "which wich wihch whcih witch",
    "who": "who who's whos hoo whom whose whoes",
    "when": "when wen",
    "where": "where where's wheres wher",
    "why": "why wy",
    "how": "how how's hows hwo howmeny",
}
STANDARD = {typed: word for word, forms in _STANDARD.items() for typed in forms.split()}
_ALL = "|".join(sorted(map(re.escape, STANDARD), key=len, reverse=True))
QUESTION_WORD = re.compile(rf"\b(?:{_ALL})\b(?!['’])", re.IGNORECASE)
_MEASURES = {
    "many": "many", "meny": "many", "much": "many", "mutch": "many", "often": "often",
    "long": "long", "old": "age", "come": "why", "dangerous": "size",
}  # fmt: skip
_MEASURES |= dict.fromkeys(
    listed("far tall high deep big large wide heavy fast hot cold strong small thick"), "size"
)
_TIMES = frozenset(listed("year years date century time decade"))
PEOPLE = frozenset(
    listed(
        "person man woman guy lady author artist king queen president writer painter inventor "
        "scientist actor singer emperor explorer philosopher poet director people craftsman worker "
        "somebody someone god hero"
    )
)
_AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|dose|can|could|will|would|should|has|have|had|may|must)"
)


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_YES_NO = _pattern(rf"^\W*{_AUXILIARY}(?:n't)?\b(?!\s+(?:you|u)\b)")
_ORDER = _pattern(r"^\W*(?:please |pls |plz )?(?:name|tell|give|list|say|define|spell)\b")
_COUNT = _pattern(
    r"^\W*(?:please )?(?:convert|calculate|count|add|subtract|multiply|divide|express|change)\b"
)
_NAMING = _pattern(
    r"\b(?:call(?:ed|s)?|ca[dl]l?e?d|named?|naem|naym|word|wrod|term|known as|stands? for|say|spell"
    r"|saying|synonym|opposite|plural|symbol|abbreviation)\b"
)
_NUMBER_OF = _pattern(
    r"\b(?:what|which)(?: is| was|'s)?(?: the)?(?: \w+)? (?:number|amount|total|sum)\b"
)
_PURPOSE = _pattern(r"\b(?:what|which) .*\b(?:used )?for\W*$")
_LETTERS = _pattern(r"\bstands? for\b|\bshort for\b")
_MEANS = _pattern(r"\bwhat(?:'?s)? (?:do|does|did|is the meaning)\b.*\bmean(?:s|ing)?\b")
_MADE_OF = _pattern(
    r"^\S+ (?:even |exactly )?(?:is|are|was|were|does|do)\b.*"
    r"(?:\bmade (?:of|from|out of)\b|\bconsists? of\b)"
)
_TO_DO = _pattern(r"^what (?:(?:should|can|do|could) (?:i|you|we|one) do|happens|happened)\b")
_TO_TELL = _pattern(
    r"^what (?:do|should|can|shall|could) (?:i|we) (?:tell|say|answer)\b(?! to (?:get|a|an)\b)"
)
_ENDS = _pattern(r"^\w+\W*$")
_COST = _pattern(r"\b(?:costs?|price|pay)\b")
_REASON = _pattern(r"^\S+ (?:is the )?reason\b|^what makes\b")
_TIME_OF = _pattern(r"^\S+ (?:is |was )?the (?:year|date)\b")
_CLAUSE = _pattern(
    r"[.!?;:…]+(?=\s|$)|,(?!\d)|\s(?:-|–|—)+\s"
    r"|\b(?:and|but|so|because|bc|cause|cos|then|anyway)\b"
    r"|\b(?=i (?:always|thou?gh?t|think|forg[eo]t|keep|kep|guess|mean|swear|dont|do not|cant|cannot"
    r"|need|was|am)\b)"
    r"|\b(?=my (?:friend|mom|mum|dad|son|daughter|kid|wife|husband|boss|teacher|brother|sister"
    r"|mate)s? )"
)
_BEGINS_A_CLAUSE = _pattern(
    r"(?:^|[,.;:!?\-(]|\b(?:and|but|so|like|um|uh|know|tell me|wonder|wondering|remember|quick|ok"
    r"|is|was|then|anyway|by|of|in|on|to|from|for|with|at|idk|forget|forgot|sure|asks?|asked|pls|plz"
    r"|please|again|now|lol|hey|q|question|says?)\b)\W*$"
)
_AUXILIARY_NEXT = _pattern(rf"^\S+\s+(?:exactly\b|again\b|else\b|on earth\b|{_AUXILIARY}\b|to\b)")
_ASKS_FOR_A_NAME = _pattern(
    r"\b(?:call\w*|cal|caled|cald|named?|naem|word|wrod|term|know|tell)\b|\?"
)
_THE = _pattern(
    r"^(?:is|are|was|were)? ?(?:the |a |an )(?:(?:name|term|word|number|kind|sort|type|names|words"
    r"|title) (?:of |for )(?:the |a |an )?)?(?P<noun>.+)"
)
_NO_NOUN = frozenset(
    listed(
        "is are was were do does did can could will would should has have had be the a an of in on "
        "to for that which who you i we they it he she called name word term kind sort type what "
        "one so if with and as my your else me u this these those another by at from"
    )
)


@functools.lru_cache(maxsize=8192)
def kinds_asked(text: str) -> tuple[str, ...]:
    """The kind of answer that each question word of a text asks for, in their order.

    >>> kinds_asked("do u know when it opens and what year was it built, and who by")
    ('when', 'who')
    """
    found = []
    for match in QUESTION_WORD.finditer(text):
        word = STANDARD[match[0].casefold()]
        if _asks(text, match.start(), word):
            rest = re.split(r"(?<=\w)[.!?;]\s", text[match.start() :])[0]
            found.append(_kind(rest, word, text[: match.start()].rstrip()[-_NEAR:].casefold()))
    return tuple(found)


@functools.lru_cache(maxsize=8192)
def kind_asked(text: str) -> str:
    """The kind of answer that a text asks for in the first place, of those in `SAID`.

    >>> [kind_asked(text) for text in ("Why is it so?", "berlin wall fall year", "It is in Peru.")]
    ['why', 'when', 'statement']
    """
    plain = text.strip()
    start, end = asking_part(plain)
    kinds = kinds_asked(plain[start:end]) or kinds_asked(plain)
    short = len(plain.split()) <= SHORT_QUESTION
    if _YES_NO.match(plain) and short:
        return "what" if re.search(r"\bor\b", plain) else "yes or no"
    if kinds:
        return kinds[0] if short else kinds[-1]
    if _COUNT.match(plain):
        return "many"
    if _ORDER.match(plain):
        return "name"
    if _states(plain):
        return "statement"
    words = set(re.findall(r"\w+", plain.casefold()))
    if words & {"year", "yr", "date", "when"} and len(words) <= SHORT:
        return "when"
    if words & {"many", "meny", "count", "number", "nr", "total", "much"}:
        return "many"
    return "name" if _NAMING.search(plain) else "none"


def group_of(kind: str) -> str:
    """Kinds that differ in wording only are one group."""
    return GROUPS.get(kind, kind)


@functools.lru_cache(maxsize=8192)
def asking_part(text: str) -> tuple[int, int]:
    """Where the clauses begin and end that ask: the whole of a short text."""
    if len(text.split()) <= SHORT:
        return 0, len(text)
    parts = _clauses(text)
    for pattern in (QUESTION_WORD, _ASKS_FOR_A_NAME):
        asking = [
            place for place, (start, end) in enumerate(parts) if pattern.search(text[start:end])
        ]
        if asking:
            break
    else:
        return 0, len(text)
    first, last = asking[-1], asking[-1]
    # A clause like "what is it called" says too little alone: what it points at stands before it.
    while first and len(text[parts[first][0] : parts[last][1]].split()) < _CLAUSE_WORDS:
        first -= 1
    start, end = parts[first][0], parts[last][1]
    if last + 1 < len(parts) and len(text[parts[last][0] : end].split()) < _CLAUSE_WORDS - 3:
        end = parts[last + 1][1]
    return start, end


@functools.lru_cache(maxsize=8192)
def nouns_asked_for(text: str) -> tuple[str, ...]:
    """The words right after "which" and "what".

    >>> nouns_asked_for("Which big grey animal has a horn?"), nouns_asked_for("what is an end")
    (('big', 'grey', 'animal'), ('end',))
    """
    found: list[str] = []
    for match in QUESTION_WORD.finditer(text):
        if STANDARD[match[0].casefold()] not in ("what", "which"):
            continue
        rest = text[match.end() : match.end() + 2 * _NEAR].strip()
        if the := _THE.match(rest):
            rest = the["noun"]
        for word in re.findall(r"[\w'-]+|[,.?!]", rest.casefold())[:4]:
            if word in _NO_NOUN or not word[0].isalnum():
                break
            found.append(word)
    return tuple(found)


def _asks(text: str, place: int, word: str) -> bool:
    """Whether a question word asks, and does not join a clause to what stands before it."""
    rest = text[place:]
    if _TO_TELL.match(rest):
        return False
    begins = bool(_BEGINS_A_CLAUSE.search(text[:place][-_NEAR:]))
    if word in ("when", "where"):
        return bool(_AUXILIARY_NEXT.match(rest) or _ENDS.match(rest)) or len(text.split()) <= 4
    if word == "how":
        follows = re.findall(r"[\w']+", rest[: 2 * _NEAR].casefold())[1:2]
        measures = bool(follows) and follows[0] in _MEASURES
        return measures or begins or bool(_AUXILIARY_NEXT.match(rest))
    return word != "who" or begins or len(text.split()) <= 5


def _kind(rest: str, word: str, before: str) -> str:
    """The kind that a question word asks for, from what follows."""
    if word in ("why", "who", "when", "where"):
        return word
    near = re.findall(r"[\w']+", rest[: 3 * _NEAR].casefold())[1:5]
    if word == "how":
        if near and near[0] in _MEASURES:
            kind = _MEASURES[near[0]]
            return "cost" if near[0] == "much" and _COST.search(rest) else kind
        mine = re.match(r"how (?:can|should|do) i\b", rest, re.IGNORECASE)
        return "name" if _NAMING.search(rest) and not mine else "how"
    if before.endswith("for") and near[:1] == ["reason"]:
        return "why"
    if _NUMBER_OF.match(rest):
        return "many"
    if (near and near[0] not in ("the", "is", "are") and _TIMES & set(near[:2])) or _TIME_OF.match(
        rest
    ):
        return "when"
    if PEOPLE & set(near[:1]) or (
        PEOPLE & set(near[1:2]) and near[0] not in ("is", "the", "do", "does", "are", "was")
    ):
        return "who"
    for kind, pattern in (
        ("letters", _LETTERS),
        ("why", _REASON),
        ("means", _MEANS),
        ("to do", _TO_DO),
    ):
        if pattern.search(rest):
            return kind
    if _MADE_OF.search(rest) and not _NAMING.search(rest):
        return "made of"
    if _PURPOSE.match(rest.strip()) and not _NAMING.search(rest):
        return "for"
    return "name" if _NAMING.search(rest) else "what"


def _states(text: str) -> bool:
    letters = text.lstrip("\"'“‘ ")
    sentence = text.endswith((".", "!")) and letters[:1].isupper() and text.upper() != text
    return sentence and len(text.split()) > 3


@functools.lru_cache(maxsize=8192)
def _clauses(text: str) -> tuple[tuple[int, int], ...]:
    """Where each clause of two words or more begins and ends."""
    found, start = [], 0
    for match in _CLAUSE.finditer(text):
        if len(text[start : match.start()].split()) >= 2:
            found.append((start, match.start()))
        start = match.start() if not match[0] or match[0].isalpha() else match.end()
    if len(text[start:].split()) >= 2:
        found.append((start, len(text)))
    return tuple(found) or ((0, len(text)),)
