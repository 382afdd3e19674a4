"""A rewrite: an instruction for the mutator model, or edits and a template that need no model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from query_mutator.models.calls import Message
from query_mutator.operators.edits import EDITS, apply_edits

REWRITE_REQUEST = "Rewrite this question: "
MAX_GROWTH = 4
MAX_EXTRA_CHARACTERS = 200


@dataclass(frozen=True)
class Operator:
    """One way to rewrite a question.

    >>> Operator("qa", template="Question: {query}\\nAnswer:").wrap("Why is the sky blue?")
    'Question: Why is the sky blue?\\nAnswer:'
    """

    name: str
    preserves_meaning: bool = True
    description: str = ""
    template: str | None = None
    """Text with `{query}` in it: no model is needed."""
    edits: tuple[str, ...] = ()
    """Names of edits (`operators/edits.py`) that change the question without a model."""
    instruction: str | None = None
    """What the mutator model is told to do, with the question after the edits."""
    examples: tuple[tuple[str, str], ...] = ()
    ends_with: str = ""
    """A rewrite that does not end so is refused (`?` catches answers in place of questions)."""
    tuned: bool = False
    """Whether a mutator that was tuned for rewriting is asked, in its own way, where there is one;
    instruction and examples are for those that were not."""

    def __post_init__(self) -> None:
        for edit in self.edits:
            if edit not in EDITS:
                raise ValueError(f"there is no edit {edit!r}")

    @property
    def needs_model(self) -> bool:
        return self.instruction is not None

    def edit(self, query: str) -> str:
        """The question after the operator's edits; unchanged where it has none."""
        return apply_edits(query, self.edits) if self.edits else query

    def wrap(self, query: str) -> str:
        """The question in the operator's template; unchanged where it has none."""
        return self.template.replace("{query}", query) if self.template else query

    def messages(self, query: str) -> tuple[Message, ...]:
        """The chat that asks the mutator: instruction, examples as turns, the question last.

        Examples as turns, each with the same request in front, keep even a 135M model from
        answering the question in place of rewriting it.
        """
        turns: list[Message] = [{"role": "system", "content": self.instruction or ""}]
        for before, after in self.examples:
            turns.append({"role": "user", "content": REWRITE_REQUEST + before})
            turns.append({"role": "assistant", "content": after})
        turns.append({"role": "user", "content": REWRITE_REQUEST + query})
        return tuple(turns)

    def plain(self) -> dict[str, Any]:
        """Its fields; those that operators have not always had only where they say something."""
        values = asdict(self)
        return values if self.tuned else {k: v for k, v in values.items() if k != "tuned"}

    def read_rewrite(
        self, query: str, output: str, *, shown_examples: bool = True
    ) -> tuple[str, str]:
        """The rewrite in a model's output and ""; or the question and why there is no rewrite."""
        text = " ".join(output.strip().split())
        text = text.removeprefix(REWRITE_REQUEST.strip()).strip().strip('"').strip()
        if not text:
            return query, "the mutator said nothing"
        if len(text) > MAX_GROWTH * len(query) + MAX_EXTRA_CHARACTERS:
            return query, f"the rewrite is {len(text)} characters long"
        if self.ends_with and not text.endswith(self.ends_with):
            return query, f"the rewrite does not end with {self.ends_with!r}"
        if not shown_examples:
            return text, ""
        known = {before.casefold() for before, _ in self.examples}
        leaked = {after.casefold() for _, after in self.examples}
        if text.casefold() in leaked and query.casefold() not in known | leaked:
            return query, "the rewrite repeats an example"
        return text, ""
