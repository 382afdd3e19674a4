"""Whether a text says yes or no, where that is what was asked."""

from __future__ import annotations

import re

from query_mutator.english.words import asks_yes_or_no, content_words, sentences

YES = r"yes|yeah|yep|yup|yea|certainly|definitely|absolutely|of course|indeed|correct|true|right"
NO = (
    r"no|nope|nah|not really|not at all|not quite|(?:certainly|definitely|absolutely|of course) not"
    r"|incorrect|false|wrong|never"
)
OPENING = re.compile(
    r"\W*(?:(?:well|oh|hm+|um+|so|ok|okay|sorry|actually|in short|i'd say|i would say|i think|"
    r"(?:the )?(?:short )?answer(?: is)?)\b\W*)*"
    rf"(?:(?P<no>{NO})|(?P<yes>{YES}))"
    r"(?=\s*(?:[^\w\s'%]|$)|\s+(?:it|they|he|she|you|we|i|that|this|there|not|an?|the)\b)"
)
"""A yes or a no before a pause or a whole sentence: "no one" is neither."""
NEGATED = re.compile(r"\b(?:cannot|[a-z]+n't|not(?! only\b)|never|no longer)(?!\w)")


def says_yes(text: str) -> bool | None:
    """Whether a text begins with a yes; None where it begins with neither yes nor no.

    >>> says_yes("Well, no, they can't."), says_yes("Yes."), says_yes("No one knows it.")
    (False, True, None)
    """
    found = OPENING.match(_plain(text))
    return None if found is None else found["no"] is None


def means_yes(question: str, text: str) -> bool | None:
    """Whether the first sentence says what was asked whether it is so, or that it is not so.

    >>> means_yes("Can penguins fly?", "They can't."), means_yes("Can bees fly?", "Bees fly well.")
    (False, True)
    """
    first = next(iter(sentences(text)), "")
    if not asks_yes_or_no(question) or NEGATED.search(_plain(question)):
        return None
    if NEGATED.search(_plain(first)):
        return False
    asked = [word for word in re.findall(r"\w+", question) if content_words(word)]
    is_said = bool(asked) and content_words(asked[-1]) <= content_words(first)
    return True if is_said else None


def without_yes_or_no(text: str) -> str:
    """What a text says beside its yes or no.

    >>> without_yes_or_no("No, they can't."), without_yes_or_no("Yes, Rome is in Italy.")
    ('they .', 'Rome is in Italy.')
    """
    plain = text.replace("’", "'")
    found = OPENING.match(_plain(plain))
    rest = plain[found.end() :].lstrip(" ,;:.!-–—") if found else plain
    return re.sub(NEGATED, "", rest)


def _plain(text: str) -> str:
    return text.replace("’", "'").lower()
