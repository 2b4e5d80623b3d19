"""Ways to say where reading begins or ends: an offset, an end of the log, a time, a transaction id."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from triplicate.errors import ArgumentError

EARLIEST, LATEST = "earliest", "latest"
OFFSET_MAX = 2**63 - 1
"""The greatest offset at which a log may begin: readers give offsets in columns of 64 bits with sign."""


@dataclass(frozen=True, slots=True)
class TransactionId:
    """The first record whose transaction id is not less than `value`. Only for logs whose transaction ids never fall."""

    value: int


Position = int | str | datetime.datetime | TransactionId
"""An offset; ``"earliest"`` or ``"latest"``; the first record that was written at a time (with its zone) or later; a `TransactionId`."""


def check_position(position: Position) -> Position:
    """Return a position if it is a valid one.

    Raises:
        ArgumentError: another text, another type, an offset below 0, or a time without a zone.
    """
    if not isinstance(position, int | str | datetime.datetime | TransactionId):
        raise ArgumentError(f"{position!r} is no position in a log: give an offset, a time with its hour, or another form of a position")
    if isinstance(position, str) and position not in (EARLIEST, LATEST):
        raise ArgumentError(f"{position!r} is no position in a log: give an offset, {EARLIEST!r}, {LATEST!r}, a time or a TransactionId")
    if isinstance(position, int) and (position < 0 or isinstance(position, bool)):
        raise ArgumentError(f"{position} is no offset of a log: offsets begin at 0")
    if isinstance(position, datetime.datetime) and position.tzinfo is None:
        raise ArgumentError(f"the time {position.isoformat()} has no zone: give one, for example datetime.UTC")
    return position


def check_offset(offset: int) -> int:
    """Return an offset if it is a whole number. Raises ArgumentError."""
    if type(offset) is not int:
        raise ArgumentError(f"{offset!r} is no offset of a log: an offset is an integer, not {type(offset).__name__}")
    return offset


def time_us(time: datetime.datetime) -> int:
    """A time with its zone as µs since the epoch."""
    since = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
