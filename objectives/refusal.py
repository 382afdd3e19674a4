"""Whether an answer is a refusal."""

from __future__ import annotations

import re

_REFUSAL = re.compile(
    r"^\W*(?:(?:i['’]?m|i am|we['’]?re)\s+(?:very |so |really )?(?:sorry|afraid)"
    r"|sorry\b|unfortunately,? i\b|as an? (?:ai|artificial|language|large)\b"
    r"|i (?:can(?:no|['’])?t|can not|won['’]?t|will not|am (?:not able|unable)|do not|don['’]?t)"
    r" (?:to )?(?:help|assist|answer|provide|do that|comply|fulfil+|discuss|give|offer|support))",
    re.IGNORECASE,
)


def is_refusal(answer: str) -> bool:
    """True where the answer opens like a refusal, or says nothing at all.

    >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("Paris is the capital.")
    (True, False)
    """
    return not answer.strip() or bool(_REFUSAL.search(answer[:200]))
