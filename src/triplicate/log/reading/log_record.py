"""Single records, for programs that read a log record by record."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from triplicate.errors import ArgumentError
from triplicate.log.core.payload import Headers
from triplicate.log.reading.log_entries import LogEntry

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record of a log.

    Args:
        offset: its place in the log.
        value, key: None where the record has none.
        headers: name and value of each, in order.
        time_us: its timestamp, µs since the epoch; the time at which its entry was written where it has none of its own.
        transaction_id: None where it has none.
    """

    offset: int
    value: bytes | None
    key: bytes | None
    headers: Headers
    time_us: int
    transaction_id: int | None

    @property
    def time(self) -> datetime.datetime:
        """`time_us` in UTC."""
        return EPOCH + datetime.timedelta(microseconds=self.time_us)


def check_limit(limit: int) -> None:
    """Raises ArgumentError: a call cannot ask for this number of records."""
    if type(limit) is not int or limit < 1:
        raise ArgumentError(f"a call asks for at least 1 record, not {limit!r}")


def records_of(entry: LogEntry) -> Iterator[LogRecord]:
    """The records of an entry, in order; none of a control record."""
    keys, headers, times, transactions = entry.keys, entry.headers, entry.timestamps_us, entry.transaction_ids
    wall_time_us = entry.wall_time_us
    for slot, (offset, value) in enumerate(zip(entry.offsets, entry.values, strict=True)):
        yield LogRecord(
            offset,
            value,
            None if keys is None else keys[slot],
            () if headers is None else headers[slot],
            wall_time_us if times is None else times[slot],
            None if transactions is None else transactions[slot],
        )
