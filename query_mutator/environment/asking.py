"""What is said to the models about one question: its rewrite by an operator, its answer."""

from __future__ import annotations

from dataclasses import dataclass

from query_mutator.environment.faithful import unfaithful_flow
from query_mutator.models.calls import Outcome
from query_mutator.models.roles import Roles
from query_mutator.operators import Operator
from query_mutator.operators.tuned import tuned_messages

DEFAULT_REFUSAL = "I'm sorry, but I can't help with that."
"""What stands in for the answer of a target call that failed."""


@dataclass(frozen=True)
class Mutation:
    """A rewritten query. Where the call failed it is the original, where the rewrite was refused
    the original after the operator's edits."""

    question: str
    """The question as rewritten, without the text of a template."""
    text: str
    """What to send to the target model."""
    operator: str
    call: Outcome | None = None
    """How the mutator's call ended; None where the operator needs none."""
    refused: str = ""
    """Why the model's rewrite was not used."""

    @property
    def failed(self) -> bool:
        return self.call is not None and self.call.failed

    @property
    def reason(self) -> str:
        """Why the call failed, or why the rewrite was refused."""
        return _reason(self.call) or self.refused


@dataclass(frozen=True)
class TargetAnswer:
    """The target model's answer. Where the call failed, it is the default refusal."""

    text: str
    cut: bool = False
    """True where the token limit ended the answer."""
    call: Outcome | None = None
    """How the call ended; None where the answer was there before."""

    @property
    def failed(self) -> bool:
        return self.call is not None and self.call.failed

    @property
    def reason(self) -> str:
        """Why the call failed."""
        return _reason(self.call)


async def mutation_flow(
    query: str,
    operator: Operator,
    roles: Roles,
    *,
    original: str | None = None,
    seed: int | None = None,
) -> Mutation:
    """The flow of one rewrite: ask the mutator, read its words, check that it kept the meaning.

    `original` is what was asked at first, where `query` is a rewrite already: that must be kept.
    """
    edited = operator.edit(query)
    if not operator.needs_model:
        return Mutation(edited, operator.wrap(edited), operator.name)
    tuned = operator.tuned and bool(roles.rewriter_model)
    messages = tuned_messages(edited) if tuned else operator.messages(edited)
    outcome = await roles.mutation_call(messages, seed=seed, tuned=tuned)
    if outcome.failed:
        return Mutation(query, query, operator.name, outcome)
    rewrite, refused = operator.read_rewrite(edited, outcome.text, shown_examples=not tuned)
    if not refused and operator.preserves_meaning and rewrite != edited and roles.faithful:
        asked = original or query
        refused = await unfaithful_flow(asked, rewrite, edited if asked == query else "")
    if refused:
        rewrite = edited
    return Mutation(rewrite, rewrite, operator.name, outcome, refused)


async def answer_flow(prompt: str, roles: Roles, *, seed: int | None = None) -> TargetAnswer:
    """The flow of one question to the target model."""
    outcome = await roles.answer_call(prompt, seed=seed)
    if outcome.failed:
        return TargetAnswer(DEFAULT_REFUSAL, call=outcome)
    return TargetAnswer(outcome.text.strip(), outcome.reply.cut, outcome)


def _reason(call: Outcome | None) -> str:
    return call.failure.reason if call is not None and call.failure is not None else ""
