"""What the simulated models say: deterministic texts, their tokens and their embeddings.

An answer callable has the signature `answer(model, system, prompt) -> str`. One with a fourth
parameter named `seed` is also given the sampling seed of calls whose temperature is above 0, and 0
for the others.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Answer = Callable[..., str]

MUTATOR_PREFIXES = ("", "Please tell me: ", "In short: ", "Could you explain: ")
QUALITIES = (
    "simple",
    "well known",
    "gradual",
    "practical",
    "useful",
    "common",
    "precise",
    "natural",
)
MUSINGS = (
    "there is a lot one could say",
    "opinions differ and it depends",
    "that may mean several things",
    "one would have to look into it",
)
EVASIONS = (
    "I am not sure what you mean; could you say more about it?",
    "That depends on many things, and there is no single answer.",
    "Many people like to talk about the weather when this comes up.",
    "It would be best to ask someone who knows the subject well.",
)

# P(the reference is given) by the form of the prompt and by whether the known question is messy.
REFERENCE_PROBABILITY = {
    ("question_answer", "messy"): 0.90,
    ("question_answer", "clear"): 0.65,
    ("one_sentence", "messy"): 0.50,
    ("one_sentence", "clear"): 0.95,
    ("plain", "messy"): 0.35,
    ("plain", "clear"): 0.60,
}

_TOKEN = re.compile(r"\s*\S{1,6}")
_WORD = re.compile(r"[a-z0-9']+")
_REWRITE_REQUEST = re.compile(
    r"^(rewrite|rephrase|reword|shorten|correct)\b[^:]*: *", re.IGNORECASE
)


def stable_hash(*parts: object) -> int:
    """Return 64 bits that depend only on the text of the parts, in any process."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def stable_uniform(*parts: object) -> float:
    """Return a number strictly between 0 and 1 that depends only on the text of the parts."""
    return ((stable_hash(*parts) >> 11) + 0.5) / 2**53


def tokenise(text: str) -> list[str]:
    """Return pieces of up to six letters, about 1.3 a word, that join to the text again."""
    return _TOKEN.findall(text)


def embed(text: str, dimensions: int) -> list[float]:
    """Return a unit vector; texts that share words and word beginnings lie close to each other."""
    vector = [0.0] * dimensions
    for word in _WORD.findall(text.lower()) or [""]:
        for feature in (word, word[:4]):
            bits = stable_hash("embed", feature)
            vector[bits % dimensions] += 1.0 if bits >> 63 else -1.0
    norm = math.sqrt(sum(value * value for value in vector))
    if norm == 0.0:
        vector[0] = norm = 1.0
    return [value / norm for value in vector]


def default_answer(model: str, system: str, prompt: str, seed: int = 0) -> str:
    """Return the tidied prompt to calls with a system message (mutators), else a made-up answer.

    The made-up answer is shorter and has more of the prompt's words where the prompt contains
    "Question:" or "one short sentence".
    """
    return _mutate(system, prompt, seed) if system else _respond(model, prompt, seed)


def answer_from_questions(path: str | Path) -> Answer:
    """Return an answer callable that knows a JSONL file's `question`s and `reference` answers.

    Calls with a system message are mutator calls, answered as `default_answer` does. Any other
    prompt is matched with the longest known question that it contains (case and spaces aside),
    else with the one that shares most words. The reference is given with the probability below,
    drawn by a stable hash of the model, the prompt and the seed, and an evasive or off-topic
    sentence otherwise:

    | form of the prompt                  | messy question | clear question |
    | ----------------------------------- | -------------- | -------------- |
    | has "Question:" and "Answer:"       | .90            | .65            |
    | asks for "one short sentence"       | .50            | .95            |
    | neither                             | .35            | .60            |

    A known question is messy or clear as the row's `style` says; without one it is clear when it
    starts with a capital, ends in "?" and has no doubled space.
    """
    known = _KnownQuestions(_read_questions(Path(path)))

    def answer(model: str, system: str, prompt: str, seed: int = 0) -> str:
        if system:
            return _mutate(system, prompt, seed)
        found = known.find(prompt)
        if found is not None:
            probability = REFERENCE_PROBABILITY[prompt_form(prompt), found.state]
            if stable_uniform("reference", model, prompt, seed) < probability:
                return found.reference
        return EVASIONS[stable_hash("evasion", model, prompt, seed) % len(EVASIONS)]

    return answer


def prompt_form(prompt: str) -> str:
    """Return "question_answer", "one_sentence" or "plain"."""
    lowered = prompt.lower()
    if "question:" in lowered and "answer:" in lowered:
        return "question_answer"
    return "one_sentence" if "one short sentence" in lowered else "plain"


def question_state(question: str) -> str:
    """Return "clear" for a capital, a question mark and single spaces, else "messy"."""
    clear = question[:1].isupper() and question.endswith("?") and "  " not in question
    return "clear" if clear else "messy"


def _mutate(system: str, prompt: str, seed: int) -> str:
    tidy = _REWRITE_REQUEST.sub("", " ".join(prompt.split())).rstrip(" ?!.,;:")
    prefix = MUTATOR_PREFIXES[stable_hash("prefix", system, seed) % len(MUTATOR_PREFIXES)]
    return f"{prefix}{tidy[:1].upper()}{tidy[1:]}?"


def _respond(model: str, prompt: str, seed: int) -> str:
    lowered = prompt.lower()
    well_asked = "question:" in lowered or "one short sentence" in lowered
    for instruction in (
        "question:",
        "answer:",
        "answer in one short sentence",
        "one short sentence",
    ):
        lowered = lowered.replace(instruction, " ")
    words = list(dict.fromkeys(word for word in _WORD.findall(lowered) if len(word) > 3)) or [
        "that"
    ]
    bits = stable_hash("target", model, prompt, seed)
    quality = QUALITIES[bits % len(QUALITIES)]
    # The number keeps the answers to two prompts apart even where their words are the same.
    number = (bits >> 8) % 1_000_000
    if well_asked:
        return f"{' '.join(words[:6]).capitalize()}: {quality}, number {number}."
    musing = MUSINGS[(bits >> 32) % len(MUSINGS)]
    first = words[(bits >> 40) % len(words)]
    second = words[(bits >> 48) % len(words)]
    return (
        f"When it comes to {first}, {musing}, though some call {second} {quality}, "
        f"and others would rather mention item {number} of a long list."
    )


def _normalise(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(" ?!.,")


@dataclass(frozen=True)
class _Known:
    question: str
    reference: str
    state: str


def _read_questions(path: Path) -> list[_Known]:
    rows: list[_Known] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            question, style = str(row["question"]), row.get("style")
            state = style if style in ("messy", "clear") else question_state(question)
            rows.append(_Known(question, str(row["reference"]), state))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{path}, line {number}: expected a JSON object with question and reference, "
                f"got {line[:80]!r}"
            ) from error
    if not rows:
        raise ValueError(f"{path} holds no questions")
    return rows


class _KnownQuestions:
    """Finds the known question that a prompt is about."""

    def __init__(self, rows: list[_Known]) -> None:
        # Longest first, so that the most specific of several contained questions is found.
        self._rows = sorted(rows, key=lambda row: -len(row.question))
        self._texts = [_normalise(row.question) for row in self._rows]
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for index, text in enumerate(self._texts):
            for word in set(_WORD.findall(text)):
                self._by_word[word].append(index)

    def find(self, prompt: str) -> _Known | None:
        """Return the question, or None where the prompt shares no word with any."""
        normalised = _normalise(prompt)
        for index, text in enumerate(self._texts):
            if text in normalised:
                return self._rows[index]
        shared: Counter[int] = Counter()
        for word in set(_WORD.findall(normalised)):
            shared.update(self._by_word.get(word, ()))
        if not shared:
            return None
        return self._rows[max(shared, key=lambda index: (shared[index], -index))]
