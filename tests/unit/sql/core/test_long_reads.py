"""Statements that were too long for the event loop: how long they are kept off it."""

from __future__ import annotations

from itertools import pairwise

from triplicate.sql.core.long_reads import LongReads


def trials(long: LongReads, count: int, version: int = 1) -> list[int]:
    """Execute a statement that is always too long; the numbers of the executions that were tried."""
    tried = []
    for number in range(count):
        if long.admits("select a", version):
            tried.append(number)
            long.exceeded("select a", version)
    return tried


def test_a_long_statement_is_tried_again_after_a_doubling_number_of_executions() -> None:
    long = LongReads()
    assert trials(long, 100) == [0, 9, 26, 59]
    assert long.admits("select b", 1)


def test_the_pause_has_an_upper_bound() -> None:
    tried = trials(LongReads(), 30_000)
    assert max(after - before for before, after in pairwise(tried)) == 4097


def test_a_statement_that_has_become_short_stays_admitted() -> None:
    long = LongReads()
    long.admits("select a", 1)
    long.exceeded("select a", 1)
    assert [long.admits("select a", 1) for _ in range(12)] == [False] * 8 + [True] * 4


def test_another_schema_forgets_the_statements() -> None:
    long = LongReads()
    assert trials(long, 5) == [0]
    assert long.admits("select a", 2)


def test_the_memory_is_bounded() -> None:
    long = LongReads()
    for number in range(3000):
        long.admits(f"select {number}", 1)
        long.exceeded(f"select {number}", 1)
    assert len(long._pauses) == 1000
