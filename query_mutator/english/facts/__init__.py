"""Whether an answer gives the facts that a right answer must give."""

from query_mutator.english.facts.finder import NOT_MENTIONED, Found, find_facts, judge_facts

__all__ = ["NOT_MENTIONED", "Found", "find_facts", "judge_facts"]
