"""The life of a transaction that holds the writer, through orders of statements, limits and ends."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from triplicate.errors import SqlError
from triplicate.sql.core.writer_hold import Ending, EndRequest, WriterHold

LIMIT = SqlError("25P04", "too long")


class Holds(RuleBasedStateMachine):
    """Counts how often the transaction asks to be ended."""

    def __init__(self) -> None:
        super().__init__()
        self.hold = WriterHold()
        self.requests: list[EndRequest] = []
        self.is_running = False
        self.limit_reached = False

    def note(self, request: EndRequest | None) -> None:
        if request is not None:
            self.requests.append(request)

    @precondition(lambda self: not self.is_running)
    @rule()
    def start(self) -> None:
        if self.requests:
            with pytest.raises(SqlError):
                self.hold.start()
            return
        self.hold.start()
        self.is_running = True

    @precondition(lambda self: self.is_running)
    @rule()
    def finish(self) -> None:
        self.is_running = False
        self.note(self.hold.finish())
        assert not self.limit_reached or self.requests

    @precondition(lambda self: not self.requests)
    @rule()
    def a_limit(self) -> None:
        self.limit_reached = True
        self.note(self.hold.expire(LIMIT))
        assert bool(self.requests) is not self.is_running

    @rule(ending=st.sampled_from([Ending.COMMIT, Ending.ROLLBACK, Ending.LOST]))
    def end(self, ending: Ending) -> None:
        had_ended = bool(self.requests)
        request = EndRequest(ending)
        self.note(self.hold.end(request))
        assert had_ended or self.requests == [request]

    @invariant()
    def it_ends_once(self) -> None:
        assert len(self.requests) == self.hold.is_over
        assert self.hold.is_running is self.is_running
        assert self.hold.expired is (LIMIT if self.limit_reached else None)


TestHolds = Holds.TestCase


def test_an_expired_transaction_has_its_reason() -> None:
    hold = WriterHold()
    assert hold.expire(LIMIT) == EndRequest(Ending.EXPIRED)
    with pytest.raises(SqlError, match="too long"):
        hold.check()
