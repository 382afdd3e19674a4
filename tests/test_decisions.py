"""What becomes of a call whose attempt has failed, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from query_mutator.models.calls import Failure
from query_mutator.models.decisions import Decision, Step, View, decide

BUSY = Failure("busy", "HTTP 503")
BACKOFF_S, HOLD_S = 0.5, 10.0


def view(*, here: int = 1, elsewhere: tuple[int, ...] = (), **changes: Any) -> View:
    """What is known after one failure of a call that may be tried again, on a server that is up."""
    known = {"is_tried_out": False, "is_up": True, "is_suspect": False, "may_wait": False}
    return View(here, elsewhere, **(known | changes), backoff_s=BACKOFF_S, hold_s=HOLD_S)


@pytest.mark.parametrize(
    ("known", "decision"),
    [
        (view(), Decision(Step.RETRY, BACKOFF_S)),
        (view(may_wait=True), Decision(Step.RETRY, BACKOFF_S)),
        (view(is_suspect=True), Decision(Step.RETRY, BACKOFF_S)),
        (view(is_tried_out=True), Decision(Step.GIVE_UP)),
        (view(is_tried_out=True, is_suspect=True), Decision(Step.GIVE_UP)),
        (view(is_suspect=True, may_wait=True), Decision(Step.WAIT, leave_alone=True)),
        (
            view(is_suspect=True, may_wait=True, is_tried_out=True),
            Decision(Step.WAIT, leave_alone=True),
        ),
        (view(is_up=False, may_wait=True), Decision(Step.WAIT)),
        (view(is_up=False), Decision(Step.RETRY, BACKOFF_S)),
    ],
)
def test_on_the_only_server_a_call_is_tried_again_waits_or_ends(
    known: View, decision: Decision
) -> None:
    assert decide(BUSY, known) == decision


@pytest.mark.parametrize(
    ("known", "decision"),
    [
        (view(elsewhere=(0,)), Decision(Step.OTHER_SERVER)),
        (view(here=2, elsewhere=(3, 1)), Decision(Step.OTHER_SERVER)),
        (view(elsewhere=(1,)), Decision(Step.OTHER_SERVER, BACKOFF_S)),
        (view(elsewhere=(0,), is_suspect=True), Decision(Step.OTHER_SERVER, leave_alone=True)),
        (view(elsewhere=(0,), is_up=False, may_wait=True), Decision(Step.OTHER_SERVER)),
        (
            view(elsewhere=(1,), is_tried_out=True, is_suspect=True),
            Decision(Step.GIVE_UP, leave_alone=True),
        ),
    ],
)
def test_among_several_servers_a_call_moves_on_at_once_to_one_that_has_failed_it_less(
    known: View, decision: Decision
) -> None:
    assert decide(BUSY, known) == decision


def test_a_call_that_timed_out_is_tried_again_when_the_server_may_have_let_go_of_it() -> None:
    timeout = Failure("timeout", "no answer")
    assert decide(timeout, view()) == Decision(Step.RETRY, HOLD_S)
    assert decide(timeout, view(elsewhere=(1,))) == Decision(Step.OTHER_SERVER, BACKOFF_S)
