"""The things an answer names, in order: runs of words that say what the question did not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from query_mutator.english.facts.mentions import written
from query_mutator.english.facts.tokens import Token
from query_mutator.english.words import words_in

Span = tuple[int, int]
COPULA = words_in(
    "is are was were be called named by becomes become gets get makes it's that's they're has "
    "have means : = in from use → ->"
)
ARTICLES = words_in(
    "a an the of this that some very in on to from for with its their your my at just most "
    "known as either probably"
)
DETERMINERS = frozenset(("a", "an", "the", "-", "*", "'"))
PRONOUNS = words_in("it it's that that's this they they're these answer")
GLUE = words_in("of i e the a an ' de la le da von - & sir")
BESIDE_ITEM = DETERMINERS | frozenset(("maybe", "perhaps", "possibly"))
JOINS = frozenset((",", "or", "and", "/", "\n"))
FURTHEST_ITEM = 6
BETWEEN_ITEMS = DETERMINERS | frozenset(("or", "and", ".", "maybe", "perhaps"))
EMPHASIS = re.compile(r"\*\*([^*\n]{1,40})\*\*|`([^`\n]{1,40})`|[\"“]([^\"”\n]{1,40})[\"”]")


@dataclass(frozen=True)
class Run:
    """Words of an answer that name one thing: tokens `first` to `last`."""

    first: int
    last: int
    fact: bool
    """Whether it is the fact that is looked for, or goes over into it."""
    after_copula: bool
    """Said to be something: after `is`, `called`, a colon and the like."""
    opens: bool
    """The first content of its sentence."""
    alone: bool
    """The only content of its sentence."""
    name: bool
    """Written with a capital that is not its sentence's."""
    emphasised: bool
    echo_before: bool
    echo_after: bool
    """Whether words of the question stand before or after it in its sentence."""
    pronoun: bool
    """Its sentence begins with `it`, `that` and the like."""
    sentence: int
    clause: int

    @property
    def stated(self) -> bool:
        """Whether its sentence says that it is what the question asks for."""
        return self.after_copula and (self.echo_before or self.pronoun)


@lru_cache(maxsize=4096)
def emphasised(answer: str) -> tuple[str, ...]:
    """What an answer puts in bold, in quotes or as code."""
    found = ("".join(match.groups("")) for match in EMPHASIS.finditer(answer))
    return tuple(f" {' '.join(written(one).low.split())} " for one in found)


def runs_of(answer: str, tokens: Sequence[Token], spans: Sequence[Span]) -> list[Run]:
    """The things that the tokens name."""
    of_fact = in_spans(tokens, spans)
    places: list[list[int]] = []
    opened = False
    for place, token in enumerate(tokens):
        if token.new or of_fact[place]:
            if opened and not (
                of_fact[place]
                and of_fact[places[-1][-1]]
                and _paused(tokens, places[-1][-1], place)
            ):
                places[-1].append(place)
            else:
                places.append([place])
            opened = True
        elif token.text not in GLUE and not _ends_initial(tokens, place):
            opened = False
    bold = emphasised(answer)
    sentences: dict[int, list[Token]] = {}
    for token in tokens:
        sentences.setdefault(token.sentence, []).append(token)
    return [_run(tokens, run, of_fact, bold, sentences) for run in places]


def _paused(tokens: Sequence[Token], before: int, after: int) -> bool:
    return any(not token.text.isalnum() for token in tokens[before + 1 : after])


def in_spans(tokens: Sequence[Token], spans: Sequence[Span]) -> list[bool]:
    """For each token whether it belongs to one of the spans."""
    return [any(a < token.end and b > token.start for a, b in spans) for token in tokens]


def _run(
    tokens: Sequence[Token],
    places: Sequence[int],
    of_fact: Sequence[bool],
    bold: Sequence[str],
    sentences: dict[int, list[Token]],
) -> Run:
    first, last = places[0], places[-1]
    token = tokens[first]
    around = sentences[token.sentence]
    others = [
        one for one in around if one.content and not token.start <= one.start <= tokens[last].start
    ]
    before = [one for one in others if one.start < token.start]
    lead = [one for one in around if one.start < token.start and one.text not in ARTICLES]
    text = f" {' '.join(one.text for one in tokens[first : last + 1])} "
    return Run(
        first=first,
        last=last,
        fact=any(of_fact[place] for place in places),
        after_copula=bool(lead) and lead[-1].text in COPULA,
        opens=not before,
        alone=not others,
        name=all(tokens[place].raw[0].isupper() for place in places)
        and ((first != 0 and tokens[first - 1].sentence == token.sentence) or len(places) > 1),
        emphasised=any(text in one or one in text for one in bold),
        echo_before=any(not one.new for one in before),
        echo_after=any(not one.new for one in others if one.start > token.start),
        pronoun=bool(lead) and lead[0].text in PRONOUNS,
        sentence=token.sentence,
        clause=token.clause,
    )


def _ends_initial(tokens: Sequence[Token], place: int) -> bool:
    return tokens[place].text == "." and place > 0 and len(tokens[place - 1].text) == 1


def joined(
    tokens: Sequence[Token], of_fact: Sequence[bool], first: int, last: int
) -> tuple[str, str]:
    """What joins other things to those tokens, before and after: "or", a comma and the like, or "".

    A comma and "or" are an "or".
    """
    while first > 0 and tokens[first - 1].text in BESIDE_ITEM:
        first -= 1
    return _joint(tokens, of_fact, first - 1, -1), _joint(tokens, of_fact, last + 1, 1)


def _joint(tokens: Sequence[Token], of_fact: Sequence[bool], place: int, step: int) -> str:
    """What stands between a thing and the next one, from a place on in the direction of `step`."""
    if not 0 <= place < len(tokens) or tokens[place].text not in JOINS:
        return ""
    joint = tokens[place].text
    for _ in range(FURTHEST_ITEM):
        place += step
        if not 0 <= place < len(tokens) or of_fact[place]:
            return ""
        token = tokens[place]
        if token.new:
            return joint
        if token.text not in BETWEEN_ITEMS and not token.text.isdigit():
            return ""
        joint = "or" if token.text == "or" else joint
    return ""
