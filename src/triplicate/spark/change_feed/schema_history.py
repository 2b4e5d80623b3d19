"""Finds the schema changes in a database's log by bisection: every batch has the schema version before and after it. Pure.

Between two batches with the same version there is no schema change. So only about two hundred entries are read of a log with a million
transactions and ten schema changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import ConfigError, FormatError
from triplicate.spark.change_feed.lineage import LocatedChange
from triplicate.spark.cluster.arrow import EntryRange
from triplicate.sql import BatchHeader, SchemaChange, Transaction, decode_header, decode_transaction, table_change

SCAN_RECORDS, SCAN_BYTES = 512, 64 * 1024
"""Limits, for each schema change, of a part of the log that is read as a whole: one read instead of many small ones."""

EntriesOf = Callable[[int, int], Iterable[EntryRange]]
"""The entries that hold the transactions from one offset to another (exclusive), in order."""


def batch_header(part: EntryRange) -> BatchHeader:
    """Raises ConfigError: the entry was not written by a database. FormatError: its format is unknown to this release."""
    if part.view.preamble is None:
        raise ConfigError("triplicate-changes: the log holds an entry that no database wrote")
    return decode_header(bytes(part.view.preamble))


def transactions(part: EntryRange, header: BatchHeader, low: int, high: int) -> Iterator[tuple[int, int, Transaction]]:
    """Slot, size in bytes and content of the transactions `low` to `high` (exclusive) of an entry."""
    for slot, record in enumerate(part.view.values(low, high), start=low):
        if record is None:
            raise ConfigError("triplicate-changes: the log holds a record that no database wrote")
        yield slot, len(record), decode_transaction(record, header.tables)


class _SchemaText(NamedTuple):
    """One schema change in the log."""

    offset: int
    version: int
    """The schema version after it."""
    sql: str


@dataclass(frozen=True, slots=True)
class _LogEntryBatch:
    first: int
    end: int
    before: int
    after: int
    changes: tuple[_SchemaText, ...]


class SchemaHistory:
    """The schema changes of one database's log between two offsets.

    Args:
        entries: reads the log.
        low, high: the transactions to search, end exclusive; at least one.
    """

    def __init__(self, entries: EntriesOf, low: int, high: int) -> None:
        self._entries = entries
        self._low, self._high = low, high
        self._last = self._at(high - 1)
        self._first = self._last if self._last.first <= low else self._at(low)

    @property
    def version_before(self) -> int:
        """The schema's version before the first transaction."""
        return max((change.version for change in self._first.changes if change.offset < self._low), default=self._first.before)

    @property
    def version_after(self) -> int:
        """The schema's version after the last transaction."""
        return max((change.version for change in self._last.changes if change.offset < self._high), default=self._last.before)

    def backward(self) -> Iterator[LocatedChange]:
        """The changes that create, drop or rename a table or a column, newest first.

        Raises:
            FormatError: the schema versions in the batches contradict each other.
        """
        for offset, version, sql in self._texts():
            change = table_change(sql) if self._low <= offset < self._high else None
            if change is not None:
                yield LocatedChange(offset, version, change)

    def _texts(self) -> Iterator[_SchemaText]:
        yield from reversed(self._last.changes)
        if self._first is not self._last:
            yield from self._between(self._first.end, self._first.after, self._last.first, self._last.before)
            yield from reversed(self._first.changes)

    def _between(self, low: int, before: int, high: int, after: int) -> Iterator[_SchemaText]:
        if before > after:
            raise FormatError(f"the schema's version falls from {before} to {after} between versions {low} and {high} of the log")
        if before == after:
            return
        if high - low <= SCAN_RECORDS * (after - before):
            changes, left = list[_SchemaText](), SCAN_BYTES * (after - before)
            for part in self._entries(low, high):
                changes += _batch(part).changes
                left -= len(part.view.value_data)
                if left < 0:
                    break  # Records of large transactions have 4 MiB each.
            else:
                yield from reversed(changes)
                return
        middle = self._at((low + high) // 2)
        yield from self._between(middle.end, middle.after, high, after)
        yield from reversed(middle.changes)
        yield from self._between(low, before, middle.first, middle.before)

    def _at(self, offset: int) -> _LogEntryBatch:
        return next(_batch(part) for part in self._entries(offset, offset + 1))


def _batch(part: EntryRange) -> _LogEntryBatch:
    header = batch_header(part)
    version, changes = header.schema_version_before, []
    if header.schema_version_after != version:
        for slot, _, transaction in transactions(part, header, 0, part.view.count):
            for operation in transaction.operations:
                if isinstance(operation, SchemaChange):
                    version += 1
                    changes.append(_SchemaText(part.first_offset + slot, version, operation.sql))
    if version != header.schema_version_after:
        raise FormatError(
            f"the batch at version {part.first_offset} holds {len(changes)} schema changes, and says that it leads from schema version "
            f"{header.schema_version_before} to {header.schema_version_after}"
        )
    return _LogEntryBatch(part.first_offset, part.first_offset + part.view.count, header.schema_version_before, version, tuple(changes))
