"""The changes of a database, transaction by transaction, read from its log: for programs in Python, and for sessions of a node.

A reader keeps the position of the last transaction that it has processed, and goes on from there after any interruption. Transactions are
whole and in the order of the log.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from triplicate.client import Client
from triplicate.errors import ArgumentError, OffsetTruncated, SqlError
from triplicate.log import LogEntry, LogReader, Logs
from triplicate.runtime import Clock
from triplicate.sql.core.committed_changes import CommittedTransaction, FeedEntry, Wants, entry_header, transactions_in
from triplicate.sql.core.records import SchemaChange, decode_transaction
from triplicate.sql.core.schema_changes import TableCreated, TableRenamed, fold, table_change
from triplicate.sql.hosting.database_directory import read_info

SCAN_RECORDS = 200_000
"""Limit on the records that one call reads, so that a call for a table that seldom changes ends."""
ANSWER_BYTES = 1024 * 1024
"""A call ends after the transaction with which the log's records of its answer exceed this size."""
LOOP_BYTES = 32 * 1024
"""An entry of more bytes than this is decoded on a thread."""
BEHIND_S = 5.0
"""Limit on the wait for entries that the copy has applied, and that readers of the log do not see yet."""


async def changes(
    client: Client, name: str, from_position: int = 0, *, tables: Collection[str] | None = None, logs: Logs | None = None
) -> AsyncGenerator[CommittedTransaction, None]:
    """The committed transactions of a database from a position on; then it waits for further ones, and does not end.

    Args:
        from_position: of the last transaction that was processed; 0 for the begin.
        tables: leave out changes of others, and changes of the schema; None for all.
        logs: those of the client, with the keys of encrypted logs; made from the client by default.

    Raises:
        SqlError: 3D000, there is no such database; 55000, the log does not keep the position any more: the message names the oldest;
            22023, the position lies beyond the end. FormatError: a later release has written the log.
    """
    info = await read_info(client, name)
    wanted = None if tables is None else frozenset(map(fold, tables))
    reader = await open_reader(logs or Logs(client), info.log, from_position)
    try:
        while True:
            try:
                entry = await anext(reader)
            except OffsetTruncated as error:
                raise _not_kept(error) from error
            for transaction in transactions_in(
                feed_entry(entry), lambda table, _: wanted is None or fold(table) in wanted, wants_schema=wanted is None
            ):
                yield transaction
    finally:
        await reader.aclose()


async def open_reader(logs: Logs, log: str, position: int) -> LogReader:
    """A reader of a database's log. Raises SqlError: 55000 and 22023, as `changes`."""
    try:
        return await logs.reader(log, position)
    except OffsetTruncated as error:
        raise _not_kept(error) from error
    except ArgumentError as error:
        raise SqlError("22023", f"the database has no position {position}: {error}") from error


def _not_kept(error: OffsetTruncated) -> SqlError:
    return SqlError("55000", f"the changes from this position on are not kept any more: {error}", hint="Begin with a copy of the tables.")


def feed_entry(entry: LogEntry) -> FeedEntry:
    """The parts of an entry that its changes are made of."""
    view = entry.view
    return FeedEntry(entry.first_offset - entry.slot, entry.slot, view.values(0, view.count), entry.preamble, entry.wall_time_us)


@dataclass(frozen=True, slots=True)
class FeedPart:
    """The answer of one call."""

    transactions: list[CommittedTransaction]
    position: int
    """Up to which the log was read."""


Offload = Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]


def _decoded(entry: FeedEntry, wants: Wants, *, wants_schema: bool) -> list[CommittedTransaction]:
    return list(transactions_in(entry, wants, wants_schema=wants_schema))


class FeedScan:
    """Reads a bounded part of a database's log.

    Args:
        log: the log's name. offload: calls a function on a thread.
    """

    def __init__(self, logs: Logs, log: str, clock: Clock, offload: Offload) -> None:
        self._logs = logs
        self._log = log
        self._clock = clock
        self._offload = offload

    async def read(self, begin: int, end: int, most: int, wants: Wants, *, wants_schema: bool) -> FeedPart:
        """The transactions from one position to another.

        Args:
            end: the copy's position. most: limit on the transactions.

        Raises:
            SqlError: as `open_reader`.
        """
        found: list[CommittedTransaction] = []
        position, size = begin, 0
        until = self._clock.monotonic() + BEHIND_S
        reader = await open_reader(self._logs, self._log, begin)
        try:
            while position < end and position - begin < SCAN_RECORDS and size <= ANSWER_BYTES:
                entry = await reader.next_entry(max(0.0, until - self._clock.monotonic()))
                if entry is None:
                    break
                read, before, entry_bytes = feed_entry(entry), len(found), sum(len(value or b"") for value in entry.values)
                decode = partial(_decoded, read, wants, wants_schema=wants_schema)
                for transaction in decode() if entry_bytes <= LOOP_BYTES else await self._offload(decode):
                    found.append(transaction)
                    if len(found) == most:
                        return FeedPart(found, transaction.position)
                position = entry.end_offset
                size += entry_bytes if len(found) > before else 0
        except OffsetTruncated as error:
            raise _not_kept(error) from error
        finally:
            await reader.aclose()
        return FeedPart(found, max(position, begin))

    async def named_since(self, begin: int, end: int, version: int) -> dict[str, int]:
        """The version of the schema since which a name is that of its present table, for the tables that were made or renamed since.

        The changes are found by bisection: every entry has the schema's version before and after it.

        Args:
            begin, end: positions. version: of the schema at `end`.
        """
        since: dict[str, int] = {}
        if begin >= end:
            return since
        first = await self._schema_changes(begin)
        pending = [(first.end, first.after, end, version)]
        found = list(first.changes)
        while pending:
            low, before, high, after = pending.pop()
            if before >= after or low >= high:
                continue
            middle = await self._schema_changes((low + high) // 2)
            found += middle.changes
            pending += [(low, before, middle.begin, middle.before), (middle.end, middle.after, high, after)]
        for number, sql in sorted(found):
            change = table_change(sql)
            if isinstance(change, TableCreated):
                since[fold(change.table)] = number
            elif isinstance(change, TableRenamed):
                since[fold(change.new_name)] = number
        return since

    async def _schema_changes(self, position: int) -> _EntrySchema:
        """Those of the entry that holds a record."""
        reader = await open_reader(self._logs, self._log, position)
        try:
            found_entry = await reader.next_entry(BEHIND_S)
        finally:
            await reader.aclose()
        if found_entry is None:
            raise SqlError("57P03", f"the entry at position {position} cannot be read yet; try again")
        entry = feed_entry(found_entry)
        header = entry_header(entry)
        number, found = header.schema_version_before, list[tuple[int, str]]()
        if header.schema_version_after != number:
            for record in entry.records:
                for operation in decode_transaction(record or b"", header.tables).operations:
                    if isinstance(operation, SchemaChange):
                        number += 1
                        found.append((number, operation.sql))
        end = entry.first_offset + len(entry.records)
        return _EntrySchema(entry.first_offset, end, header.schema_version_before, header.schema_version_after, tuple(found))


@dataclass(frozen=True, slots=True)
class _EntrySchema:
    begin: int
    end: int
    before: int
    after: int
    changes: tuple[tuple[int, str], ...]
    """(the version after it, its text) of each."""


FindRead = Callable[[str], bool]
"""Whether a role may read a table of this name."""


def wanted_by_role(may_read: FindRead, since: dict[str, int], table: str | None) -> Wants:
    """The changes that a role gets: of tables that it may read, as long as they had their present names.

    Args:
        since: as `FeedScan.named_since`. table: the only one that is wanted; None for all.
    """
    only = None if table is None else fold(table)

    def wants(name: str, version: int) -> bool:
        folded = fold(name)
        return only in (None, folded) and version >= since.get(folded, 0) and may_read(name)

    return wants
