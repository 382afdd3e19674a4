"""Whether an answer gives a fact as its answer, or only mentions it on the way to another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from query_mutator.english.mentions import Written, mentions, slips, written
from query_mutator.english.spelling import correct_spelling

TOKEN = re.compile(r"\d+(?:[.:]\d+)*(?!\w)|[^\W_]+(?:'[^\W_]+)?|[^\w\s]|\n")
FUNCTION = frozenset(
    """a about after again all almost already also although always am an and another any are around
    as at be because been before being between both but by can could did do does doing done down
    each either else especially even ever every few for from get gets give given gives go goes had
    has have having he her here hers him his how however i if in into is it its itself just kind
    know known let like made make makes many may me mean means might more most much must my near
    no nor not now of off often on once one ones only onto or other others our out over own people
    per please quite rather really same say says she should since so some someone something
    sometimes sort still such sure take than thank that the their them then there therefore these
    they thing things this those though through thus to together too type typically under until up
    upon us use used uses using usually very via want was way we well were what when where whereas
    whether which while who whom whose why will with within without word words would yes you your
    yours answer answers question questions called call calls term name named names refer refers
    referred looking great good easy ah oh ok okay hi hello hey haha wow ooh sorry um uhh hmm think
    thinking believe guess exactly actually basically simply probably likely main mainly mostly
    common commonly general generally normal normally correct right example equal equals
    total result number numbers amount altogether special particular certain various different
    important popular famous small large big little lot part form piece accordingly consequently
    whole approximately roughly nearly course currently located situated official officially
    primary classic standard usage british american english speak speaks speaker speakers
    colloquially colloquial everyday expression formal formally technical technically typical
    traditional specific specifically particularly precisely strictly speaking simple single
    device object tool item substance material method process example kind sort
    own made makes making come comes came found find finds need needs needed require requires
    required refers describes described denotes denote means meaning stand stands standing belong
    belongs belonged lie lies lying live lives contain contains consist consists composed present
    considered credited written painted composed discovered invented founded built created
    designed developed introduced produced used serve serves served act acts show shows shown
    city country state kingdom republic capital town river planet animal person man woman
    first full real true so-called world long short new old
    s re ll ve d m t isn't aren't wasn't don't doesn't didn't can't won't it's that's
    you're they're he's she's there's what's i'm i'd i'll let's we're you'd you'll""".split()
)
NEGATIVE = frozenset(
    """not no never isn't aren't wasn't weren't don't doesn't didn't can't cannot won't nor neither
    without except unlike wrongly mistakenly excluding instead""".split()
)
NOT = r"(?:not|no|never|nor|neither|isn't|aren't|wasn't|weren't|without|except|excluding|unlike|rather than|instead of|as opposed to|opposite of|confused with|mistaken for|do not use|don't use|leave out)"
SMALL = r"(?:(?:a|an|the|really|just|in|on|at|to|from|about|called|of|by|for|already|even|be|use)\s+)"
DENIED_BEFORE = re.compile(rf"\b{NOT}[\s,:]+{SMALL}{{0,2}}(?:[^\W\d_]+\s+)?$")
DENIED_AFTER = re.compile(
    r"^\W{0,2}(?:(?:itself|proper|really|actually|strictly speaking)\W+)*"
    r"(?:(?:is|are|was|were|does|do|did|has|have|had|would|could|can|will) not(?! only)\b|"
    r"(?:isn|aren|wasn|weren|doesn|don|didn|hasn|couldn|wouldn)'t\b|cannot\b|can't\b|"
    r"is (?:a close )?second\b|being (?:only )?(?:the|a)\b|serving\b|merely\b|excluded\b)"
)
BESIDE = re.compile(
    r"\b(?:than|(?<!sounds )(?<!looks )like|unlike|close to|near|next to|(?:north|south|east|west) of|followed by|"
    r"friend of|help of|similar to|related to|compared (?:to|with)|as (?:\w+ )?as|size of|"
    r"reminds? \w+ of|likened to that of|that of|opposite of|enemy of|while|whereas|until \d+ it was|"
    r"formerly|previously|(?<!known )(?<!such )(?<!called )(?<!to )as|superseded|preferred to|border with|named after|in response to|transferred from)"
    r"\s+(?:(?:a|an|the|his|her|their|soviet|mount|planet)\s+){0,2}$"
)
RELATIVE = frozenset(
    """which who whom whose where when because since although though while whereas unlike as if
    being having but so with until before after than thus therefore hence and following""".split()
)
RETRACTS = re.compile(
    r"\b(?:actually,? no\b|no,? wait|wait,? no|wait|scratch that|(?:i )?(?:have to |must )?correct "
    r"(?:myself|that)|correction|i was mistaken|i mean(?:t)?(?! to)\b|i was wrong|that's wrong|"
    r"let me (?:check|double-check|correct)(?: that| it)?|double-check|strike that|no,? sorry|"
    r"sorry,? no\b|sorry,? that's|sorry,? that was|oops|on second thou?ght|i take that back)|"
    r"(?:\.\.\.|…|[-–—]) ?(?:hm+,? )?no\b"
)
LEADS = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:although|though|while|whereas|unlike|contrary to|as|since|because|"
    r"apart from|besides|despite|in spite of)\b[^.!?\n,]*,(?=[^.!?\n]*\w)"
)
"""A clause at the beginning of a sentence that concedes or explains: the claim comes after it."""
EXPLAINS = re.compile(
    r"[,;]?\s+(?:because|since|as|for|just like|given that|considering)\s+(?!a\b|the\b)?[^.!?\n]*"
)
CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|accordingly|that (?:is|means|makes|leaves|gives)|"
    r"that's|which (?:makes|gives|leaves)|total (?:is|to|of)|in total|altogether|in all|"
    r"in other words|that is to say|"
    r"answer (?:is|:)|makes|gives|leaving|result is|you get|equals|correction)\b|\bi\.e\.|=|->|→|⇒"
)
UNDECIDED = re.compile(
    r"\b(?:maybe|perhaps|either|not sure|can't say|cannot say|not able to (?:say|tell)|one of "
    r"(?:these|those|them)|candidates|options|possibilit|could be|might be|depends|hard to say|"
    r"don't know|such as|for example|several|various|four kinds|as a language model)\b"
)
COPULA = frozenset(
    """is are was were be called named by becomes become gets get makes it's that's they're has have
    means : = in from use""".split()
)
ARTICLES = frozenset(
    """a an the of this that some very in on to from for with its their your my at just most
    known as either probably of""".split()
)
GLUE = frozenset(("of", "i", "e", "the", "a", "an", "'", "de", "la", "le", "da", "von", "-", "&", "sir"))
ENDS = frozenset((".", "!", "?", "\n", ";", "…"))
PAUSES = frozenset((",", ":", "(", ")", "–", "—"))


@dataclass(frozen=True)
class Token:
    """A word, number or sign of a text and where it stands."""

    text: str
    raw: str
    start: int
    end: int
    sentence: int
    clause: int
    """Counted through the whole text: a pause or a subordinating word begins another."""
    new: bool = False
    """Whether it says what neither the question nor the reference says."""

    @property
    def content(self) -> bool:
        return self.text[0].isalnum() and self.text not in FUNCTION


def tokens_of(text: Written, known: frozenset[str]) -> list[Token]:
    """The tokens of an answer."""
    found: list[Token] = []
    sentence = clause = 0
    for match in TOKEN.finditer(text.low):
        word = match[0]
        if word in RELATIVE or word in PAUSES:
            clause += 1
        content = word[0].isalnum() and word not in FUNCTION
        new = content and not is_among(word, known)
        raw = text.raw[match.start() : match.end()]
        found.append(Token(word, raw, match.start(), match.end(), sentence, clause, new))
        if word in ENDS:
            following = text.low[match.end() : match.end() + 1]
            initial = word == "." and len(found) > 1 and len(found[-2].text) == 1
            initial = initial and found[-2].raw.isupper() and len(found) > 2
            if (word != "." or not following or following.isspace()) and not initial:
                sentence += 1
                clause += 1
    return found


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def is_among(word: str, known: frozenset[str]) -> bool:
    if word in known or stem(word) in known:
        return True
    if word.isdigit() or len(word) < 5:
        return False
    return any(
        abs(len(word) - len(one)) <= 1 and one[0] == word[0] and slips(word, one, 1) <= 1
        for one in known
        if len(one) > 4
    )


@lru_cache(maxsize=8192)
def words_of(text: str) -> frozenset[str]:
    """The words of a question or a reference, and their stems."""
    low = written(text).low
    words = {match[0] for match in TOKEN.finditer(low) if match[0][0].isalnum()}
    return frozenset(words | {stem(word) for word in words})


BANTER = re.compile(r"[^.!?\n]*(?:!|\.\.\.|…|\?)+(?=\s|$)")


def last_word_on_it(text: Written, spans: Sequence[tuple[int, int]], known: frozenset[str]) -> tuple[int, bool]:
    """Where what counts of the answer begins: after a greeting, or after it took itself back."""
    start = 0
    retracted = False
    for match in RETRACTS.finditer(text.low):
        rest = text.low[match.end() :]
        says = any(span[0] >= match.end() for span in spans) or any(
            token.new for token in tokens_of(Written(rest, rest), known)
        )
        if says and text.low[: match.start()].strip():
            start, retracted = match.end(), True
    return start, retracted


def skip_banter(text: Written, start: int, spans, known) -> int:
    """The start of the first sentence that may answer."""
    while match := BANTER.match(text.low, start):
        sentence = text.low[start : match.end()]
        rest = text.low[match.end() :]
        if not re.search(r"\w", rest):
            return start
        words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", sentence)
        inside = [span for span in spans if start <= span[0] < match.end()]
        bare = [w for w in words if w not in ("a", "an", "the", "it", "is", "it's", "that's", "that", "was", "those", "they", "they're", "are")]
        if inside and len(bare) <= 3 and words and words[0] not in ("hey", "hi", "hello"):
            return start
        claims = re.search(r"\b(?:it's|that's|they're|is|are|was|were|called|has|have)\b", sentence)
        echo = sum(is_among(w, known) and w not in FUNCTION for w in words)
        if (claims and (echo or re.match(r"\W*(?:it|that|they|those|these|this)\b", sentence))) or len(words) > 14:
            if not re.search(r"\b(?:i'm|glad|here's|let's|question|choice|congrat|no worries)", sentence):
                return start
        if len(bare) <= 2 and not re.search(r"!|…|\.\.\.", sentence):
            return start
        start = match.end()
    return start


NUMBER = re.compile(r"(?<![\w.])(?<!\s-)(?<!^-)[$€£]?(\d+(?:[.:]\d+|h\d\d)*)(?![a-z]*\d)(?!(?:st|nd|rd|th)\b)")
YEAR = re.compile(r"[12]\d{3}")


def number_claimed(low: str, known: frozenset[str], years: bool) -> str:
    """The number that an answer comes to, or ""."""
    text = LEADS.sub(" ", low)
    # "since 20 / 5 = 4" explains a claim that was made before it
    parts = EXPLAINS.sub(" ", text)
    text = parts if NUMBER.search(parts) else text

    def numbers_in(part: str) -> list[str]:
        found = [plain_number(match) for match in NUMBER.findall(part)]
        return [one for one in found if not years or YEAR.fullmatch(one)]

    ends = [match.end() for match in CONCLUDES.finditer(text) if numbers_in(text[match.end() :])]
    if ends:
        rest = re.split(r"[.!?\n](?=\s|$)", text[ends[-1] :])[0]
        numbers = numbers_in(rest)
        if "=" in rest:
            numbers = numbers_in(rest.rsplit("=", 1)[1]) or numbers
        if numbers:
            return ([one for one in numbers if one not in known] or numbers)[0]
    numbers = numbers_in(text)
    return ([one for one in numbers if one not in known] or numbers or [""])[0]


def plain_number(text: str) -> str:
    text = text.replace("h", ":")
    if "." in text and text.count(".") == 1:
        whole, after = text.split(".")
        return whole if not after.strip("0") else text
    return text


def features(
    text: Written, span: tuple[int, int], tokens: Sequence[Token], spans: Sequence[tuple[int, int]],
    question: str, fact: tuple[str, ...], retracted: bool,
) -> dict[str, float]:
    """What tells a claim from a mention, for one mention."""
    start, end = span
    inside = [i for i, token in enumerate(tokens) if token.start < end and token.end > start]
    if not inside:
        return {}
    first, last = inside[0], inside[-1]
    at = tokens[first]
    of_fact = [any(a < t.end and b > t.start for a, b in spans) for t in tokens]
    before, after = tokens[:first], tokens[last + 1 :]
    new = [t for i, t in enumerate(tokens) if t.new and not of_fact[i]]
    new_before = [t for t in new if t.start < start]
    earlier = [t for t in new_before if t.sentence < at.sentence]
    same_sentence = [t for t in new_before if t.sentence == at.sentence]
    other_clause = [t for t in same_sentence if t.clause < at.clause]
    same_clause = [t for t in same_sentence if t.clause == at.clause]
    near_before = [t.text for t in before[-4:] if t.sentence == at.sentence]
    in_clause_before = [t.text for t in before if t.clause == at.clause]
    after_clause = [t.text for t in after if t.sentence == at.sentence][:5]
    previous = [t for t in before if t.text not in ARTICLES and t.sentence == at.sentence]
    number = fact[0][:1].isdigit() and text.low[start].isdigit()
    capital = fact[0][:1].isupper()
    names = [t for t in new_before if t.raw[0].isupper() and not _begins(tokens, t)]
    digits = [t for t in new_before if t.text[0].isdigit()]
    chunk, claims_before, subject_new = _claims(tokens, of_fact, first)
    echo_after = sum(t.clause <= at.clause + 1 and t.sentence == at.sentence and t.content and not t.new for t in after)
    echo_before = sum(t.sentence == at.sentence and t.content and not t.new for t in before)
    explain = float(bool(re.search(r"\b(why|how (?:do|does|can|could|should|would)|what happens)\b", question.lower())))
    ahead, behind = text.low[tokens[0].start : start], text.low[end:]
    clause_ahead = re.split(r"[.!?;\n](?=\s)", ahead)[-1]
    denied = bool(DENIED_BEFORE.search(clause_ahead)) or bool(DENIED_AFTER.match(behind))
    sentence_tokens = [t for t in tokens if t.sentence == at.sentence]
    listed = _listed(tokens, of_fact, first, last)
    numbers_in_question = frozenset(map(plain_number, NUMBER.findall(written(question).low)))
    years = bool(YEAR.fullmatch(fact[0])) and not numbers_in_question
    claimed = number_claimed(text.low[tokens[0].start :], numbers_in_question, years) if number else ""
    match = NUMBER.match(text.low[start : end].replace(" ", ""))
    said = plain_number(match[1]) if match else text.low[start:end]
    digits_of_thousands = said.replace(".", "")
    claimed = said if claimed.replace(".", "") == digits_of_thousands else claimed
    def cap(n: float, most: float = 3.0) -> float:
        return min(float(n), most)
    chunk_texts = _chunk_texts(tokens, of_fact, first)
    return {
        "_chunks": chunk_texts, "_said": text.raw[start:end], "_fact": fact[0],
        "first": float(not new_before),
        "chunk0": float(chunk == 0),
        "chunk1": float(chunk == 1),
        "chunk_more": cap(max(0, chunk - 1)),
        "claims_before": cap(claims_before, 2),
        "subject_new": subject_new,
        "new_earlier_sentences": cap(len({t.sentence for t in earlier})),
        "new_earlier_words": cap(len(earlier) / 2),
        "new_other_clause": cap(len(other_clause)),
        "new_same_clause": cap(len(same_clause)),
        "first_sentence": float(at.sentence == tokens[0].sentence),
        "first_clause_with_new": float(not earlier and not other_clause),
        "names_before": cap(len(names)) * capital,
        "numbers_before": cap(len(digits)) * number,
        "number": float(number),
        "number_claimed": float(number and claimed == said),
        "number_other": float(number and claimed != said),
        "capital": float(capital),
        "explain": explain,
        "explain_later": explain * float(bool(earlier or other_clause)),
        "many_wordings": float(len(fact) > 8),
        "many_later": float(len(fact) > 8) * float(bool(earlier or other_clause)),
        "denied": float(denied),
        "beside": float(bool(BESIDE.search(clause_ahead))),
        "negative_near": float(any(w in NEGATIVE for w in near_before)),
        "negative_clause": float(any(w in NEGATIVE for w in in_clause_before)),
        "negative_after": float(any(w in NEGATIVE for w in after_clause[:3])),
        "copula": float(bool(previous) and previous[-1].text in COPULA),
        "begins": float(not [t for t in before if t.sentence == at.sentence and t.content]),
        "new_just_before": float(bool(before) and before[-1].new and not before[-1].raw[0].isupper()),
        "name_just_before": float(bool(before) and before[-1].new and before[-1].raw[0].isupper()),
        "new_just_after": float(bool(after) and after[0].new and after[0].sentence == at.sentence),
        "listed": float(listed),
        "undecided": float(bool(UNDECIDED.search(text.low))),
        "undecided_listed": float(bool(UNDECIDED.search(text.low)) and listed),
        "or_chain": float(listed and sum(t.text == "or" for t in sentence_tokens) > 1),
        "retracted": float(retracted),
        "echo_after": cap(echo_after / 2),
        "echo_before": cap(echo_before / 2),
        "no_echo": float(echo_after + echo_before == 0),
        "in_question": float(any(is_among(t.text, words_of(question)) for t in tokens[first : last + 1])),
        "mentions": cap(len(spans) - 1),
        "relative_later": float(any(t.text in RELATIVE for t in before if t.sentence == at.sentence)) * float(bool(same_sentence)),
        "and_before": float(bool(before) and before[-1].text in ("and", ",")) * float(bool(same_sentence)),
        "length": min(len(tokens) / 40, 2.0),
    }


def _claims(tokens: Sequence[Token], of_fact: Sequence[bool], first: int) -> tuple[int, int, float]:
    """Runs of new words before the mention; those right after a copula; a new subject."""
    chunks = claims = 0
    open_chunk = False
    subject = 0.0
    seen_content = False
    for i, token in enumerate(tokens[:first]):
        if token.new or of_fact[i]:
            if not open_chunk:
                words = [t for t in tokens[:i] if t.text not in ARTICLES]
                after_copula = bool(words) and words[-1].text in COPULA and words[-1].sentence == token.sentence
                begins = not seen_content and (not words or words[-1].text in ENDS)
                if begins and not of_fact[i]:
                    subject = 1.0
                if not of_fact[i] and (after_copula or begins):
                    claims += 1
                chunks += 1
                open_chunk = True
            seen_content = True
        else:
            if token.content:
                seen_content = True
            initial = token.text == "." and i > 0 and len(tokens[i - 1].text) == 1
            if token.text not in GLUE and not initial:
                open_chunk = False
    # a run that goes on into the mention is the mention's own
    if open_chunk and chunks:
        chunks -= 1
        claims = max(0, claims - 1)
        if chunks == 0:
            subject = 0.0
    return chunks, claims, subject


def _chunk_texts(tokens, of_fact, first):
    runs = []; open_ = False
    for i, t in enumerate(tokens[:first]):
        if t.new or of_fact[i]:
            if open_: runs[-1].append((i, t.raw, of_fact[i]))
            else: runs.append([(i, t.raw, of_fact[i])])
            open_ = True
        elif t.text not in GLUE: open_ = False
    if open_ and runs: runs.pop()
    return [" ".join(w for _, w, _ in r) for r in runs if not any(f for *_, f in r)]


def _listed(tokens: Sequence[Token], of_fact: Sequence[bool], first: int, last: int) -> bool:
    """Whether the mention is one of several things joined by commas, "or" and "and"."""
    def item(place: int, step: int) -> bool:
        if not 0 <= place < len(tokens) or tokens[place].text not in (",", "or", "and", "/", "\n"):
            return False
        joint = place
        while 0 <= place < len(tokens) and abs(place - joint) <= 6:
            place += step
            if not 0 <= place < len(tokens):
                return False
            token = tokens[place]
            if token.new and not of_fact[place]:
                return True
            if of_fact[place] or not (token.text in ("a", "an", "the", "or", "and", ",", "-", "*", ".", "maybe", "perhaps") or token.text.isdigit()):
                return False
        return False
    left = first
    while left > 0 and tokens[left - 1].text in ("a", "an", "the", "-", "*"):
        left -= 1
    return item(left - 1, -1) and item(last + 1, 1) or (
        (item(left - 1, -1) and tokens[left - 1].text in ("or", "/")) or (item(last + 1, 1) and tokens[last + 1].text in ("or", "/"))
    )


def _begins(tokens: Sequence[Token], token: Token) -> bool:
    place = tokens.index(token)
    return place == 0 or tokens[place - 1].sentence < token.sentence


@lru_cache(maxsize=4096)
def context(question: str, reference: str, fact: tuple[str, ...]) -> frozenset[str]:
    """The words that a right answer may repeat without saying anything of its own."""
    plain = words_of(question) | words_of(correct_spelling(question))
    spoken = written(reference)
    kept = spoken.low
    for start, end in reversed(mentions(spoken, fact)):
        kept = kept[:start] + " " + kept[end:]
    return plain | words_of(kept)


EXACT = re.compile(r"\b(?:spel|plural|singular|tense|contraction|comparative|superlative|past|adjective|adverb|verb|prefix|suffix)")


def mention_features(answer: str, question: str, reference: str, fact: tuple[str, ...]) -> list[dict[str, float]]:
    text = written(answer)
    exact = bool(EXACT.search(question.lower()))
    spans = mentions(text, fact, exact=exact)
    if not spans:
        return []
    known = context(question, reference, fact)
    start, retracted = last_word_on_it(text, spans, known)
    begin = skip_banter(text, start, spans, known)
    # what is conceded first is no claim
    spans = [span for span in spans if span[0] >= start]
    if not spans: return []
    if any(span[0] >= begin for span in spans): start = begin; spans=[s for s in spans if s[0]>=begin]
    else: return [] if not re.search(r"\w", text.low[begin:]) else []
    part = Written(" " * start + text.raw[start:], " " * start + text.low[start:])
    lead = LEADS.match(part.low, start)
    if lead and any(span[0] >= lead.end() for span in spans):
        part = Written(" " * lead.end() + part.raw[lead.end():], " " * lead.end() + part.low[lead.end():])
        spans = [span for span in spans if span[0] >= lead.end()]
    tokens = tokens_of(part, known)
    return [found for span in spans if (found := features(part, span, tokens, spans, question, fact, retracted))]
