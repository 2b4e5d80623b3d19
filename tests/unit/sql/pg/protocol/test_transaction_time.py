"""The times of a transaction and of its statements."""

from __future__ import annotations

from itertools import count
from typing import cast

from triplicate.runtime import Clock
from triplicate.sql.pg.protocol.transaction_time import TransactionTime


class TickingClock:
    """Each reading is a microsecond later than the one before."""

    def __init__(self) -> None:
        self._ticks = count(1000)

    def wall_us(self) -> int:
        return next(self._ticks)


def test_a_transaction_is_not_later_than_a_statement_whose_time_was_read_first() -> None:
    time = TransactionTime(cast("Clock", TickingClock()))
    statement_us = time.statement_us
    assert time.transaction_us < statement_us
    assert time.statement_us > statement_us
    time.end()
    assert time.transaction_us > statement_us
