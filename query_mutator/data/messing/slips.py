"""Slips of the fingers, and words written as they sound."""

from __future__ import annotations

import re
from random import Random

from query_mutator.data.messing.phrases import lists
from query_mutator.english.words import common_words

NEIGHBOURS = dict(
    pair.split(":")
    for pair in (
        "q:wa w:qes e:wrd r:etf t:ryg y:tuh u:yij i:uok o:ipl p:ol a:sqz s:adw d:sfe f:dgr g:fht "
        "h:gjy j:hku k:jli l:ko z:xa x:zc c:xv v:cb b:vn n:bm m:n"
    ).split()
)
KEPT = frozenset(
    "not no never nor without none one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen twenty thirty forty fifty sixty ninety hundred thousand half third "
    "first second last".split()
)
"""What no slip hits: the answer hangs on it."""
WORD = re.compile(r"""[^\W\d_]+(?:['’][^\W\d_]+)?""")
PLAIN_ONE = re.compile(r"[a-z]+")
SWAP, DROP, DOUBLE, NEIGHBOUR, SINGLE = "swap", "drop", "double", "neighbour", "single"
SLIPS = (SWAP,) * 13 + (DROP,) * 4 + (SINGLE,) * 3 + (NEIGHBOUR,) + (DOUBLE,)
SHORT_SHARE, LONG_SHARE, SPACE_SHARE = 0.5, 0.93, 0.03
TRIES = 12


def mistype(text: str, names: frozenset[str], random: Random, by_ear: float = 0.0) -> str:
    """The text with the slips of fast fingers; names get at most one, numbers and `KEPT` none.

    In a share `by_ear` of words, common ones are spelt as many people do, others as they sound.
    """
    habits: dict[str, str] = lists("sounds")["habits"]
    slipped: set[str] = set()

    def put(match: re.Match[str]) -> str:
        word = match[0]
        if _is_kept(match, text) or word.lower() in KEPT or len(word) < 3:
            return word
        if word.lower() not in names and random.random() < by_ear:
            if word in habits:
                return random.choice(habits[word].split())
            return _by_rules(word, random.choice((0, 0, 1)), random)
        if random.random() > (SHORT_SHARE if len(word) == 3 else LONG_SHARE):
            return word
        if word.lower() in names:
            if word in slipped or len(word) < 5:
                return word
            slipped.add(word)
        return slip(word, random)

    return WORD.sub(put, _misplace_spaces(text, random))


def slip(word: str, random: Random) -> str:
    """The word with one slip that does not make another word of it, or the word itself."""
    for _ in range(TRIES):
        kind = random.choice(SLIPS)
        last = len(word) - 1
        place = (
            random.randrange(last) if random.random() < 0.12 else random.randrange(1, max(2, last))
        )
        made = word
        if kind == SWAP and place < last:
            made = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        elif kind == DROP and len(word) > 4:
            made = word[:place] + word[place + 1 :]
        elif kind == DOUBLE and len(word) > 3:
            made = word[:place] + word[place] + word[place:]
        elif kind == NEIGHBOUR and len(word) > 4:
            made = (
                word[:place]
                + random.choice(NEIGHBOURS.get(word[place], word[place]))
                + word[place + 1 :]
            )
        elif kind == SINGLE:
            made = re.sub(r"(.)\1", r"\1", word, count=1)
        if made != word and made.isalpha() and made.lower() not in common_words():
            return made
    return word


def spell_by_ear(text: str, names: frozenset[str], random: Random) -> str:
    """The text with most words as they sound; names change in one place at most."""

    def put(match: re.Match[str]) -> str:
        word = match[0]
        if _is_kept(match, text) or word.lower() in KEPT - {"one"} or word.isupper():
            return word
        written: dict[str, str] = lists("sounds")["words"]
        if word.lower() in written and random.random() < 0.93:
            return random.choice(written[word.lower()].split())
        if word.lower() in names:
            return _by_rules(word, 1, random) if len(word) > 4 else word
        return _by_rules(word, random.choice((1, 2, 2, 3)), random)

    return WORD.sub(put, text)


def _by_rules(word: str, most: int, random: Random) -> str:
    """The word with so many of its letters written as they sound, none making it another word."""
    if len(word) < 3 or not word.isascii():
        return word
    if most == 0:
        return word
    rules = random.sample(SOUNDS, len(SOUNDS))
    changed = 0
    for pattern, spelling in rules:
        made = re.sub(pattern, spelling, word, count=1)
        if made != word and (made.lower() not in common_words() or len(made) < 3):
            word, changed = made, changed + 1
        if changed == most:
            break
    return word


SOUNDS = [
    (r"^kn", "n"), (r"^wr", "r"), (r"^wh", "w"), (r"ph", "f"), (r"(?<=[a-z]{2})tion", "shun"),
    (r"(?<=[a-z])ssion", "shun"), (r"(?<=[aeiou])sion", "zhun"), (r"ture(s?)$", r"cher\1"), (r"ight", "ite"),
    (r"ck", "kk"), (r"ck", "k"), (r"c(?=[aoulrt])", "k"), (r"c(?=[aoulr])", "k"), (r"c(?=[ei])", "s"), (r"qu", "kw"),
    (r"dge", "j"), (r"(?<=[nr])ge$", "j"), (r"(?<=[b-df-z])ea(?=[dklmnpstv])", "ee"), (r"ee(?=[dklmnpt])", "ea"),
    (r"ai(?=[lnrt])", "ay"), (r"oa(?=[dlnst])", "oe"), (r"ou(?=[nst])", "ow"), (r"oo(?=[lmnrt])", "ew"),
    (r"([lmnprstbfg])\1", r"\1"), (r"(?<=[a-z][bdkpt])le(s?)$", r"el\1"), (r"(?<=[a-z]{2})er$", "ur"),
    (r"(?<=[a-z]{2})or$", "er"), (r"(?<=[bdglmnrv])s$", "z"), (r"(?<=[lnrm])ed$", "d"), (r"(?<=[kps])ed$", "t"),
    (r"(?<=[a-z]{2}[b-df-hj-np-tv-z])y$", "ee"), (r"(?<=[a-z]{2}[b-df-hj-np-tv-z])y$", "i"),
    (r"a([bdklmnptv])e(s?)$", r"ay\1\2"), (r"o([bdklmnptv])e(s?)$", r"oa\1\2"), (r"i([bdklmnptv])e(s?)$", r"y\1e\2"),
    (r"ous$", "us"), (r"mb$", "m"), (r"tch", "ch"), (r"sc(?=[ei])", "s"), (r"(?<=[a-z]{2})al(s?)$", r"ul\1"),
    (r"(?<=[a-z]{2})en(?=t|$)", "in"), (r"(?<=[a-z]{2})an(?=t)", "un"), (r"(?<=[a-z]{2})in(?=g)", "in"),
    (r"e(?=[r][a-z])", "u"), (r"ir(?=[a-z])", "er"), (r"ur(?=[a-z])", "er"), (r"x", "ks"), (r"gh", ""),
    (r"(?<=[a-z])aw", "or"), (r"(?<=[a-z])ie(?=[dlnv])", "ee"), (r"ei", "ee"), (r"(?<=[b-df-hj-np-tv-z])([aeiou])([bdgklmnpt])(?=[aeiouy])", r"\1\2\2"),
    (r"ing$", "in"), (r"ate(s?)$", r"ayt\1"),
]  # fmt: skip


def _is_kept(match: re.Match[str], text: str) -> bool:
    """Whether the word stands within quotes of one word, beside digits, or is a letter."""
    before, after = text[: match.start()], text[match.end() :]
    quoted = before.count('"') % 2 == 1 and len(re.findall(r"\w+", _quote(before, after))) < 3
    return quoted or before[-1:].isdigit() or after[:1].isdigit() or before[-1:] in ("-", ".", "@")


def _quote(before: str, after: str) -> str:
    return before.rsplit('"', 1)[-1] + "x" + after.split('"', 1)[0]


def _misplace_spaces(text: str, random: Random) -> str:
    """A space that comes a letter late or not at all, here and there, never beside a digit."""
    words = text.split(" ")
    for place in range(len(words) - 1):
        one, other = words[place], words[place + 1]
        if random.random() > SPACE_SHARE or not (
            PLAIN_ONE.fullmatch(one) and PLAIN_ONE.fullmatch(other)
        ):
            continue
        if random.random() < 0.5 and len(other) > 3 and len(one) < 5:
            words[place], words[place + 1] = one + other[0], other[1:]
        elif len(one) + len(other) < 9:
            words[place], words[place + 1] = "", one + other
    return " ".join(word for word in words if word)
