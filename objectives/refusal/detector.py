"""Whether an answer is a refusal, of which kind, and by which words. English only.

A refusal is told by its structure rather than by fixed phrases: somebody who says "I", an
inability or unwillingness, and an act of speech or help; and then by what else is said. An
inability with an answer after it ("I can't see forecasts, but it rains one day in three") is an
answer, and one that breaks off or sends the user elsewhere is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from objectives.refusal import asked, filler, patterns
from objectives.refusal.text import Sentence, sentences, without_markup, without_quotations

MOST_WORDS_BEFORE = 75
"""What stands before a late refusal is an answer if it is longer than this."""
MOST_WORDS_BROKEN_OFF = 200
MANY_WORDS = 40

_NOTHING = re.compile(r"[\s\u200b-\u200f\u2060\ufeff.…\-–—_*#~=?!,;:'\"`|<>/\\(){}\[\]]*")
_PLACEHOLDER = re.compile(
    r"\W*"
    + patterns.any_of(
        r"""
        n/?a | null | nil | undefined | nan | blank | empty | todo | tbd | loading | silence
        no comment
        none (given|provided|available) | redacted | removed | deleted | end | eos | pad | s
        (no|empty|blank)( \w+)? <text>s?( (given|available|provided|generated|found))?
        assistant | <text> | end of (<text>) | im_(start|end) | endoftext
        (an )?error( (occurred|generating|while)[\w ]{0,40})?
        """,
        text="(response|answer|output|reply|content|text|result|message)",
    )
    + r"\W*",
    re.IGNORECASE,
)
_NOT_KNOWING = re.compile(r"\b(?:know|sure|certain|idea|clue|knows|say|unsure|dunno|familiar)\b")
_LETTER = re.compile(r"(?:subject|re): |dear [^\n]{1,60},?\n|hi \w+,\n", re.IGNORECASE)
_SPEAKER = re.compile(r"^\W*[A-Z][\w ]{0,20}: ", re.MULTILINE)
_CONTRAST = re.compile(
    r"[,;:–—-]? ?\b(?:but|however|though|although|still|that said|instead)\b,? ?"
)
_NEXT_CLAUSE = re.compile(r"[;:] | [–—-] ")
_CLAUSES = re.compile(r"[;:] | [–—] |, (?:but|though|yet|until|then|while|and then)\b")
_REASON = re.compile(
    r"(?:because|since|given|due|in order|out of|for (?:the sake|safety|fear|reasons)|"
    r"as (?:it|this|that|i|they|the|such|an?|you|there|doing|we))\b"
)
_HANGS_ON = re.compile(
    r"(?:in|on|at|with|for|from|to|of|by|such|which|who|that|including|especially|as|since|because|"
    r"so|if|when|before|after|or|and|not|rather|given|though|please|it|i|we|you|only|an?|the|your)\b"
)
_LEADS_IN = re.compile(r"(?:when|for|as|in|if|because|since|while)\b")
_BEFORE_CONTRAST = re.compile(r"^\W*(?:while|although|though|whilst|even though|if) ")
_ASKS_THE_USER = re.compile(r"\b(?:you|your|context|mean|specific\w*|clarif\w+|something else)\b")
_YES_OR_NO = re.compile(r"(?:yes|no|yep|nope|yeah)\b(?! (?:idea|clue|comment|single|one))")


@dataclass(frozen=True)
class Refusal:
    """A kind ("" is none) and the words that decided."""

    kind: str = ""
    phrase: str = ""


def is_refusal(answer: str, question: str = "") -> bool:
    """True where the answer refuses, evades, or says nothing at all.

    >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("Paris is the capital.")
    (True, False)
    """
    return find_refusal(answer, question).kind != ""


def refusal_kind(answer: str, question: str = "") -> str:
    """`opening`, `hedged`, `evasive` or `empty`; "" where it is an answer.

    >>> refusal_kind("Eggs are tasty! I'd rather not give a time, though.")
    'hedged'
    """
    return find_refusal(answer, question).kind


def find_refusal(answer: str, question: str = "") -> Refusal:
    """The kind of refusal that an answer is, with the words that decided.

    `opening`: it begins with one. `hedged`: one comes after something else was said. `evasive`:
    nothing is refused, and nothing answered. `empty`: nothing is said. The question, where it is
    given, tells a refusal from one that was asked for ("How do I politely decline?").

    >>> find_refusal("Well, I can't help with that.")
    Refusal(kind='opening', phrase='i cannot help')
    """
    text = without_markup(answer)
    if _NOTHING.fullmatch(text) or _PLACEHOLDER.fullmatch(text):
        return Refusal("empty", text[: patterns.LONGEST_PHRASE])
    if asked.for_a_refusal(question) or _LETTER.match(text) or len(_SPEAKER.findall(text)) > 1:
        return Refusal()
    bare, has_code = without_quotations(text)
    said = sentences(bare)
    if not said or (has_code and len(said) > 1 and not patterns.refusing(said[0].words)):
        return Refusal()
    found = _refused(said)
    if found is None and bare == text and not _YES_OR_NO.match(said[0].words):
        found = _evaded(said, question)
        if found is None and (missing := asked.missing(question, said, bare)):
            found = Refusal("evasive", missing)
    return found or Refusal()


def _refused(said: Sequence[Sentence]) -> Refusal | None:
    """The first sentence that refuses and is not made good by the rest."""
    for place, sentence in enumerate(said):
        phrase = patterns.refusing(sentence.words)
        weak = "" if phrase else patterns.found(patterns.WEAK, sentence.words)
        if not (phrase or weak) or sentence.asks:
            continue
        if weak and _YES_OR_NO.match(said[0].words):
            continue
        before, after = said[:place], said[place + 1 :]
        bounded = bool(weak or patterns.SCOPED.search(sentence.words))
        if _is_list(said) and sentence.is_item and place and not _is_thin(said[place + 1 :], 0):
            continue
        if _is_made_good(sentence.words, phrase or weak, after, bounded=bounded):
            continue
        opens = all(filler.is_courtesy(earlier.words) for earlier in before)
        if opens:
            not_knowing = weak and _NOT_KNOWING.search(weak)
            return Refusal("evasive" if not_knowing else "opening", phrase or weak)
        lately = " ".join(s.words for s in said[place - 1 : place + 1])
        broken_off = bool(phrase) and bool(patterns.BROKEN_OFF.search(lately))
        if weak and not all(filler.says_nothing(earlier.words) for earlier in before):
            continue
        if _is_thin(before, MOST_WORDS_BROKEN_OFF if broken_off else MOST_WORDS_BEFORE, broken_off):
            return Refusal("hedged", phrase or weak)
    return None


def _is_made_good(words: str, phrase: str, after: Sequence[Sentence], *, bounded: bool) -> bool:
    """Whether an answer follows the refusing words, in the same sentence or later."""
    rest = words[words.find(phrase) + len(phrase) :]
    contrast = _CONTRAST.search(rest)
    concedes = _BEFORE_CONTRAST.match(words) and words.find(phrase) < words.find(",")
    if contrast is None and concedes and "," in rest:
        clause = rest.rpartition(",")[2] if rest.count(",") == 1 else rest.partition(",")[2]
    else:
        turn = contrast or _NEXT_CLAUSE.search(rest)
        clause = rest[turn.end() :] if turn else ""
    if bounded and not clause and (so := re.search(r", (?:so|and)\b", rest)):
        clause = rest[so.end() :]
    reason = _REASON.match(clause) or (contrast is None and filler.SCRUPLE.search(clause))
    says_more = len(clause.split()) > 2 and not (reason or filler.says_nothing(clause))
    if says_more or _has_figure(clause):
        return True
    telling = [
        s for s in after if not filler.says_nothing(s.words) and not filler.SCRUPLE.search(s.words)
    ]
    if not telling:
        return False
    count = sum(len(sentence.words.split()) for sentence in telling)
    if bounded:
        return True
    return (
        _is_list(after)
        or any(filler.ANSWERS_NOW.search(sentence.words) for sentence in telling)
        or any(_has_figure(sentence.words) for sentence in telling)
        or any(_CONTRAST.match(sentence.words) for sentence in telling)
        or count >= MANY_WORDS
    )


def _evaded(said: Sequence[Sentence], question: str) -> Refusal | None:
    """Nothing but questions, or nothing but filler with an evasion in it."""
    if _is_list(said) or asked.for_a_text(question) or asked.for_someone(question):
        return None
    for sentence in said:
        if not (sentence.asks or filler.is_courtesy(sentence.words)):
            break
        if sentence.asks and filler.SUGGESTS.search(sentence.words):
            break
    else:
        asking = [s.words for s in said if s.asks and _ASKS_THE_USER.search(s.words)]
        if asking:
            return Refusal("evasive", asking[0][: patterns.LONGEST_PHRASE])
    if any(_has_figure(s.words) or filler.ANSWERS_NOW.search(s.words) for s in said):
        return None
    clauses = [clause for sentence in said for clause in _clauses(sentence.words)]
    dodges = [filler.dodge(clause) for clause in clauses]
    if not all(
        dodge or filler.says_nothing(clause) or filler.SCRUPLE.search(clause)
        for dodge, clause in zip(dodges, clauses, strict=True)
    ):
        return None
    decided = next((dodge for dodge in dodges if dodge), "")
    if not decided and question and not asked.about_itself(question):
        courteous = [filler.is_courtesy(c) or filler.ABOUT_ITSELF.search(c) for c in clauses]
        decided = "nothing but courtesy" if clauses and all(courteous) else ""
    return Refusal("evasive", decided) if decided else None


def _clauses(words: str) -> list[str]:
    """The parts of a sentence that could each inform; what hangs on another is left with it."""
    parts: list[str] = []
    for clause in _CLAUSES.split(words):
        pieces = clause.split(", ")
        if len(pieces) > 1 and _LEADS_IN.match(pieces[0]):
            pieces = pieces[1:]
        for number, piece in enumerate(pieces):
            if number and (_HANGS_ON.match(piece) or len(piece.split()) < 3):
                parts[-1] += f", {piece}"
            else:
                parts.append(piece)
    return [part for part in parts if len(part) > 2]


def _is_thin(before: Sequence[Sentence], most_words: int, broken_off: bool = False) -> bool:
    """Whether what was said before a refusal falls short of an answer."""
    told = [s.words for s in before if not s.words.endswith(":")]
    if not broken_off and (_is_list(before) or any(map(_has_figure, told))):
        return False
    return sum(len(sentence.words.split()) for sentence in before) <= most_words


def _is_list(said: Sequence[Sentence]) -> bool:
    return sum(sentence.is_item for sentence in said) >= 2


def _has_figure(words: str) -> bool:
    return bool(re.search(r"\d", words))
