"""Counts the words of clear questions to train on: which ones a misspelt one may be.

python -m query_mutator.tuning.asked_words
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from query_mutator.base.files import write_atomically
from query_mutator.base.terminal import OneLineParser, as_main
from query_mutator.data import load_questions
from query_mutator.english.typing.company import ASKED_FILE, START
from query_mutator.tuning.pair_files import written_pairs
from query_mutator.tuning.pairs import TRAIN, shipped_pairs

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
LEAST = 3
"""Times that a word or a pair of words must be found to be listed."""


def counted(texts: Iterable[str]) -> list[str]:
    """Lines of a word, or two that follow each other, and how often; the most frequent first.

    >>> counted(["What is it?", "What is up?", "What is a cat?"])
    ['<s> 3', 'is 3', 'what 3', '<s> what 3', 'what is 3']
    """
    words: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    for text in texts:
        found = [START, *WORD.findall(text.casefold())]
        words.update(word for word in found if _is_word(word))
        pairs.update(f"{one} {other}" for one, other in pairwise(found) if _is_word(one, other))
    return [*_lines(words), *_lines(pairs)]


def clear_questions() -> list[str]:
    """Each clear question to train on once."""
    clear = {pair.rewrite for pair in (*shipped_pairs(), *written_pairs())}
    clear |= {
        question.question
        for question in load_questions()
        if question.split == TRAIN and question.columns["style"] == "clear"
    }
    return sorted(clear)


def _is_word(*words: str) -> bool:
    return all(word == START or word.isalpha() for word in words)


def _lines(counts: Counter[str]) -> list[str]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [f"{term} {count}" for term, count in ranked if count >= LEAST]


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m query_mutator.tuning.asked_words", description=__doc__)
    parser.add_argument("--out", type=Path, default=ASKED_FILE)
    args = parser.parse_args(argv)
    lines = counted(clear_questions())
    text = "\n".join([*lines, ""]).encode()
    write_atomically(args.out, lambda file: file.write(text))
    print(f"{len(lines)} words and pairs of words in {args.out}")
    return 0


main = as_main(run)

if __name__ == "__main__":
    raise SystemExit(main())
