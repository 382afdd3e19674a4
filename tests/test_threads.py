"""How many threads make calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from query_mutator.models.threads import CallThreads


@pytest.fixture
def threads() -> Iterator[CallThreads]:
    made = CallThreads("test")
    yield made
    made.close()


def test_a_thread_that_has_told_of_its_end_takes_the_next_work(threads: CallThreads) -> None:
    told, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        told.set()  # whoever waits for the call goes on from here and brings the next one
        may_end.wait()

    threads.submit(first, under_way=1)
    told.wait()
    threads.submit(done.set, under_way=1)
    assert threads.count == 1
    may_end.set()
    assert done.wait(60)


def test_there_are_as_many_threads_as_work_under_way(threads: CallThreads) -> None:
    all_at_once = threading.Barrier(4)  # broken, and told, where one of them waits in line
    ended = threading.Semaphore(0)

    def work() -> None:
        all_at_once.wait(60)
        ended.release()

    for round_ in range(3):
        for number in range(4):
            threads.submit(work, under_way=number + 1 if round_ == 0 else 4)
        for _ in range(4):
            assert ended.acquire(timeout=60)
    assert threads.count == 4


def test_work_that_was_taken_is_done_after_the_close() -> None:
    threads = CallThreads("test")
    may_go_on, done = threading.Event(), threading.Event()
    threads.submit(may_go_on.wait, under_way=1)
    threads.submit(done.set, under_way=1)
    threads.close()
    with pytest.raises(RuntimeError):
        threads.submit(done.set, under_way=1)
    may_go_on.set()
    assert done.wait(60)
