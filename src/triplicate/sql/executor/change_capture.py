"""Capturing the row changes that SQLite makes, in order, to become the operations of a transaction.

Rows come from SQLite's pre-update hook. These rules make the capture complete, see `docs/sql.md`. The hook never raises: an exception
would not stop the change. Rows of a failed statement are cut off again. Virtual tables are flushed before the rows are collected. The
tables are read for changes that the hook does not see: virtual generated columns, rows of CREATE TABLE AS, counters of AUTOINCREMENT.

The changes of a large transaction are spooled piece by piece while it runs, so that the memory holds a few of them only.

The hook also sees each value before it is stored. A value that does not fit its column's declared type fails the statement, and so does
a transaction that has become too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.batch_builder import MAX_TRANSACTION_BYTES
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.lexer import quote
from triplicate.sql.core.records import (
    Operation,
    RowChange,
    RowKind,
    RowRun,
    SettingChange,
    TableDictionary,
    decode_operations,
)
from triplicate.sql.executor.captured_rows import CapturedRow, RowGroup, row_run, single_row_run
from triplicate.sql.executor.spooled_changes import PIECE_BYTES, SMALLER, SpooledChanges
from triplicate.sql.executor.table_capture import TableCapture, differs, most_bytes
from triplicate.sql.storage.sqlite_schema import INTERNAL_PREFIX, Table, has_virtual_tables, load_tables

MAX_TOUCHED = 1_000_000
"""Upper bound on the rows of tables with virtual columns that one statement changes: they are read again at its end."""
_TOO_LARGE = "54000"
_INSERT, _UPDATE, _DELETE = apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE

_LAST_NUMBER = 2**63 - 1
_OPERATION = -1
"""Stands for the number of a group in the event of an operation other than a row."""

_Row = tuple[Any, ...]


class Counters:
    """The counters of AUTOINCREMENT: of the open transaction, of the last commit, and before the batch that `begin_further` began."""

    __slots__ = ("before", "committed", "current")

    def __init__(self, counters: dict[str, int]) -> None:
        self.current = self.committed = self.before = counters


class LateChanges(Exception):
    """Rows were changed while the transaction committed, so this copy holds what the log does not."""


class ChangeCapture:
    """The changes of the open transaction on one connection.

    `events` holds tuples. That of a row: number of its group, rowid, new rowid, new row, old row. That of another operation: -1, the
    operation. A mark is the length of `events`; cutting back to a mark drops the later changes.

    The tuple of a row holds no object that Python's garbage collector tracks, so the collector passes over the rows of a large
    transaction. Otherwise its collections double the cost of capture.
    """

    def __init__(
        self, connection: apsw.Connection, max_bytes: int = MAX_TRANSACTION_BYTES, savepoints: Callable[[], Iterable[int]] = tuple
    ) -> None:
        """
        Args:
            max_bytes: upper bound on the encoded changes of one transaction.
            savepoints: the marks of the user's savepoints.
        """
        self._connection = connection
        self._savepoints = savepoints
        self._cursor = connection.cursor()
        """For queries of each transaction: a cursor that exists costs half of what a new one does."""
        self._most_bytes = 0
        """Upper bound on the bytes of the transaction's changes that are in memory."""
        self.spooled = SpooledChanges(max_bytes)
        """The transaction's changes that are not in memory any more: its first ones."""
        self._start = 0
        """The index in `events` of the transaction's first change in memory."""
        self._marks: list[int] = []
        """Marks that the running statement may be cut back to."""
        self._groups: list[RowGroup] = []
        """By number. The groups of an earlier schema remain while `events` refer to them."""
        self._known: dict[str, TableCapture] = {}
        self._stale = True
        self.full: frozenset[str] = frozenset()
        self._touched: dict[str, dict[int, bool]] = {}
        self._stored: set[tuple[str, object]] | None = None
        """The rows that the statement has stored. An INSERT … ON CONFLICT DO UPDATE must not change one of them again."""
        self._sql = ""
        """The text of the statement that was prepared last, and whether it may be an INSERT … ON CONFLICT."""
        self._is_upsert = False
        self._counts = False
        self._has_virtual_tables = False
        self.events: list[CapturedRow] = []
        self.poison: SqlError | None = None
        """The error of the first row that cannot be captured or stored; the statement must be rolled back."""
        self.unknown: str | None = None
        """Name of a changed table that is not among the tables. Only a statement that makes tables may change one."""
        connection.preupdate_hook(self._on_change)

    def schema_changed(self, full: frozenset[str]) -> None:
        """Load the tables again before the next statement.

        Args:
            full: names of the tables whose old rows are logged too.
        """
        self._stale = True
        self.full = full

    def prepare(self, sql: str = "") -> None:
        """Call before each user statement, with its text: the hook itself must not query."""
        if sql is not self._sql:
            self._sql, self._is_upsert = sql, "conflict" in sql.lower()
        self._stored = set() if self._is_upsert else None
        self._marks.clear()
        if self._stale:
            if not self.events:
                self._groups.clear()
            tables = load_tables(self._connection)
            self._known = {name: TableCapture(table, name in self.full, self._groups) for name, table in tables.items()}
            self._counts = bool(self._connection.execute("select 1 from main.sqlite_schema where name = 'sqlite_sequence'").fetchall())
            self._has_virtual_tables = has_virtual_tables(self._connection)
            self._stale = False

    @property
    def is_upsert(self) -> bool:
        """Whether the statement of the last `prepare` has an ON CONFLICT clause, so that it must not change a row that it has stored."""
        return self._is_upsert

    def tables(self) -> list[Table]:
        """The tables as of the last `prepare`."""
        return [known.table for known in self._known.values()]

    @property
    def overflowing(self) -> bool:
        """Whether the transaction has become too large, so that the statement must stop at once."""
        return self.poison is not None and self.poison.sqlstate == _TOO_LARGE

    def begin(self, dictionary: TableDictionary | None = None) -> None:
        """Drop all changes: a transaction begins.

        Args:
            dictionary: of the tables of its batch.
        """
        self.events.clear()
        self.spooled.dictionary = dictionary or TableDictionary()
        self.begin_next()
        self._marks.clear()
        self._touched.clear()
        self.poison = self.unknown = None

    def begin_next(self) -> None:
        """Later changes belong to another transaction; those of the one before are encoded."""
        self.spooled.begin()
        self._start = len(self.events)
        self._most_bytes = 0

    @property
    def count(self) -> int:
        """The changes so far."""
        return len(self.events) + self.spooled.end

    def mark(self) -> int:
        """The present point, to which `cut` can return while the statement runs, or while it is that of a savepoint."""
        mark = self.count
        self._marks.append(mark)
        return mark

    def cut(self, mark: int) -> None:
        """Drop the changes since a mark."""
        self._drop(mark)
        self._touched.clear()
        self.poison = self.unknown = None

    def _drop(self, mark: int) -> None:
        spooled, end = self.spooled, mark - self._start
        if end >= spooled.end:
            del self.events[mark - spooled.end :]
            return
        del self.events[min(mark, self._start) :]
        spooled.cut(max(end, 0))
        self._start, self._most_bytes = min(mark, self._start), 0

    def add(self, operation: Operation) -> None:
        self.events.append((_OPERATION, operation))

    def flush_virtual_tables(self) -> None:
        """Have virtual tables write their shadow tables, which they do when a savepoint begins or a transaction ends."""
        if not self._has_virtual_tables and not self._stale:
            return
        self._connection.execute("savepoint triplicate_flush; release triplicate_flush")

    def _on_change(self, change: Any) -> None:
        try:
            if change.database_name != "main":
                return
            known = self._known.get(change.table_name)
            if known is None:
                self._unknown(change.table_name)
                return
            if self._stored is not None and change.depth == 0:
                self._watch(known, change, self._stored)
            if known.virtual:
                self._touch(known, change)
                return
            operation = change.opcode
            if operation == _INSERT:
                size = self._add((known.insert, change.rowid_new, None, change.new, None), known, change)
            elif operation == _UPDATE:
                size = self._update(known, change)
            else:
                size = self._delete(known, change)
            self._most_bytes += size
            if self._most_bytes > PIECE_BYTES:
                self._spool(last_bytes=size)
        except UnicodeDecodeError:
            self._spoil(SqlError("22021", f"table {change.table_name!r} was given text that is not valid UTF-8"))
        except (apsw.FullError, apsw.IOError, apsw.CantOpenError) as error:
            self._spoil(_no_room(error))
        except Exception as error:  # noqa: BLE001  an exception would not stop the change; see the module's docstring
            self._spoil(SqlError("XX000", f"a change could not be captured: {type(error).__name__}: {error}"))

    def _watch(self, known: TableCapture, change: Any, stored: set[tuple[str, object]]) -> None:
        """Refuse the second change of one row. Changes by triggers are not refused."""
        is_keyed = known.table.shape.without_rowid
        if change.opcode == _UPDATE:
            old: object = known.keys_of(change.old) if is_keyed else change.rowid
            if (change.table_name, old) in stored:
                self._spoil(
                    SqlError(
                        "21000",
                        "ON CONFLICT DO UPDATE command cannot affect row a second time",
                        hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
                    )
                )
        if change.opcode != _DELETE:
            stored.add((change.table_name, known.keys_of(change.new) if is_keyed else change.rowid_new))

    def _spoil(self, reason: SqlError) -> None:
        if self.poison is None:
            self.poison = reason

    def _add(self, event: CapturedRow, known: TableCapture, change: Any) -> int:
        """Capture a row that is stored, if its values are accepted.

        Args:
            change: the hook's object, None for a row that was read from its table.

        Returns:
            Upper bound on the bytes of the row.
        """
        self.events.append(event)
        row: _Row = event[3]
        kinds = tuple(map(type, row))
        plan = known.plans.get(kinds) or known.plan(kinds)
        if plan.inspections is None:
            self._refuse(known, row, change)
        else:
            for index, fits in plan.inspections:
                if not fits(row[index]):
                    self._refuse(known, row, change)
                    break
        size = plan.most
        for index, most in plan.lengths:
            size += len(row[index]) * most
        return size

    def _add_stored(self, event: CapturedRow, known: TableCapture) -> None:
        """Capture a row that was read from its table, and count its bytes."""
        size = self._add(event, known, None)
        self._most_bytes += size
        if self._most_bytes > PIECE_BYTES:
            try:
                self._spool(last_bytes=size)
            except (apsw.FullError, apsw.IOError, apsw.CantOpenError) as error:
                self._spoil(_no_room(error))

    def _refuse(self, known: TableCapture, row: _Row, change: Any) -> None:
        refusal = known.broken(row, change.old if change is not None and change.opcode == _UPDATE else None)
        if refusal is not None:
            self._spoil(refusal)

    def _spool(self, last_bytes: int) -> None:
        """Take the transaction's changes out of the memory. Pieces end at all marks to which it may still be cut back.

        Args:
            last_bytes: upper bound on the bytes of the last change. A large one becomes a piece by itself.
        """
        done, total = self.spooled.end, self.count - self._start
        ends = {mark - self._start for mark in (*self._marks, *self._savepoints())} | {total - (last_bytes > PIECE_BYTES // 2)}
        for end in sorted(one for one in ends | {total} if done < one <= total):
            events = self.events[self._start : self._start + end - self.spooled.end]
            self._spool_piece(list(self._operations(events)), end, self._reached(events))
            del self.events[self._start : self._start + len(events)]
        self._most_bytes = 0

    def _spool_piece(self, operations: Sequence[Operation], end: int, reached: dict[str, int]) -> None:
        refusal = self.spooled.add(operations, end, reached)
        if refusal is not None:
            self._spoil(refusal)

    def _reached(self, events: Sequence[CapturedRow]) -> dict[str, int]:
        """The greatest rowids that rows insert, by table."""
        reached: dict[str, int] = {}
        for number in set(map(itemgetter(0), events)):
            group = None if number == _OPERATION else self._groups[number]
            if group is not None and group.kind is RowKind.INSERT and not group.table.shape.without_rowid:
                name = group.table.shape.name
                highest = max([event[1] for event in events if event[0] == number])
                reached[name] = max(highest, reached.get(name, highest))
        return reached

    def _delete(self, known: TableCapture, change: Any) -> int:
        """Capture a row that is deleted. Returns an upper bound on its bytes."""
        if change.blob_write >= 0:  # SQLite reports it as a DELETE.
            self._spoil(SqlError("0A000", f"incremental writes of table {change.table_name!r} cannot be replicated"))
            return 0
        kept = change.old if known.full else known.keys_of(change.old) if known.keyed else None
        self.events.append((known.delete, change.rowid, None, None, kept))
        return most_bytes(kept)

    def _update(self, known: TableCapture, change: Any) -> int:
        """Capture a row that is updated. Returns an upper bound on its bytes."""
        rowid, new_rowid, new = change.rowid, change.rowid_new, change.new
        moved = rowid != new_rowid
        if not known.keyed and not known.full:
            return self._add((known.moved if moved else known.update, rowid, new_rowid, new, None), known, change)
        old = change.old
        keyed = known.keyed and (known.table.shape.without_rowid or any(differs(old[index], new[index]) for index in known.keys))
        plain, with_keys = (known.moved, known.moved_keyed) if moved else (known.update, known.update_keyed)
        kept = old if known.full else known.keys_of(old) if keyed else None
        return most_bytes(kept) + self._add((with_keys if keyed else plain, rowid, new_rowid, new, kept), known, change)

    def _unknown(self, name: str) -> None:
        if not name.lower().startswith((INTERNAL_PREFIX, "sqlite_")):
            self.unknown = name

    def _touch(self, known: TableCapture, change: Any) -> None:
        rows = self._touched.setdefault(known.table.shape.name, {})
        if change.opcode != _INSERT:
            rows.setdefault(change.rowid, True)
        if change.opcode != _DELETE:
            rows.setdefault(change.rowid_new, False)
        if len(rows) > MAX_TOUCHED:
            reason = f"the statement changes more than {MAX_TOUCHED} rows of a table with virtual columns"
            self._spoil(SqlError(_TOO_LARGE, reason, hint=SMALLER))

    def end_statement(self) -> None:
        """For tables with virtual columns, whose values the hook cannot read: delete every changed row that existed before the
        statement, then insert every one that exists now.
        """
        if not self._touched:
            return
        for name, rows in self._touched.items():
            known = self._known[name]
            table = known.table
            for rowid, existed in rows.items():
                if existed:
                    self.events.append((known.delete, rowid, None, None, None))
            for rowid in rows:
                row = None if self.poison is not None else self._final_row(table, rowid)
                if row is not None:
                    self._add_stored((known.insert, rowid, None, row, None), known)
        self._touched.clear()

    def _final_row(self, table: Table, rowid: int) -> _Row | None:
        columns = ", ".join([quote(name) for _, name in table.kept])
        cursor = self._connection.execute(f"select {columns} from main.{quote(table.shape.name)} where {table.rowid_name} = ?", (rowid,))
        row = cursor.fetchone()
        if row is None:
            return None
        positions = [position for position, _ in table.kept]
        whole: list[Value] = [None] * (max(positions) + 1)
        for position, value in zip(positions, row, strict=True):
            whole[position] = value
        return tuple(whole)

    def counters(self) -> dict[str, int]:
        """The counters of AUTOINCREMENT by table."""
        if not self._counts:
            return {}
        return {str(name): int(value or 0) for name, value in self._cursor.execute("select name, seq from main.sqlite_sequence")}

    def used_up(self) -> bool:
        """Whether a counter of AUTOINCREMENT is, or was in the failed transaction, at its last number.

        SQLite reports the next number as a full disk, and undoes the transaction. A row whose number was changed by an update counts as
        well.
        """
        if any(event[0] != _OPERATION and _LAST_NUMBER in event[1:3] for event in self.events):
            return True
        if any(_LAST_NUMBER in piece.reached.values() for piece in self.spooled.pieces):
            return True
        counters = self.counters()
        counted = [known.table for name, known in self._known.items() if name in counters]
        return _LAST_NUMBER in counters.values() or any(self._has_last_number(table) for table in counted)

    def _has_last_number(self, table: Table) -> bool:
        sql = f"select 1 from main.{quote(table.shape.name)} where {table.rowid_name} = ?"
        return bool(self._connection.execute(sql, (_LAST_NUMBER,)).fetchall())

    def end_transaction(self, mark: int, before: dict[str, int]) -> dict[str, int]:
        """Capture the counters of AUTOINCREMENT that do not follow from the rows captured since `mark`; the counters now.

        An ignored insert moves the counter without a row. An update of a rowid that is logged as an insert does not move it.

        Args:
            before: the counters at the begin of the transaction.
        """
        if not self._counts:
            return {}
        events = self._since(mark)
        expected = None if self.spooled.pieces else self._expected_counters(events, before)
        if expected is not None and self._are_counters(expected):
            return expected
        now = self.counters()
        reached = dict(before)
        for found in (*(piece.reached for piece in self.spooled.pieces), self._reached(events)):
            reached.update({name: max(rowid, reached.get(name, 0)) for name, rowid in found.items() if name in now})
        for name, value in now.items():
            if value != reached.get(name) or (value <= 0 and name not in before):
                self.add(SettingChange(f"sequence:{name}", value))
        return now

    def _expected_counters(self, events: Sequence[CapturedRow], before: dict[str, int]) -> dict[str, int] | None:
        """The counters that follow from captured rows and the counters before them; None where these do not suffice.

        A real counter is never lower than these, except after an update of a rowid that is logged as an insert.
        """
        expected = before
        for number in set(map(itemgetter(0), events)):
            if number == _OPERATION:
                return None
            group = self._groups[number]
            name = group.table.shape.name
            if group.kind is not RowKind.INSERT or name not in before:
                continue
            if group.table.has_virtual_columns:
                return None
            highest = max([event[1] for event in events if event[0] == number])
            if highest > expected[name]:
                expected = expected | {name: highest}
        return expected

    def _are_counters(self, expected: dict[str, int]) -> bool:
        """Whether the counters, none of which is lower than expected, are as expected.

        Their number and sum decide this, at a fraction of what reading the counters of many tables costs. SQLite's integers could not
        hold the sum, so it is computed from two halves.
        """
        sql = "select count(*), total(seq >> 32), total(seq & 0xffffffff) from main.sqlite_sequence"
        ((count, high, low),) = self._cursor.execute(sql)
        return bool(count == len(expected) and (int(high) << 32) + int(low) == sum(expected.values()))

    def keep_only(self, mark: int, names: frozenset[str]) -> None:
        """Drop the changes since `mark`, except rows of these tables: side effects of a schema change on other tables."""
        kept = [event for event in self._since(mark) if (group := self._group(event)) is not None and group.table.shape.name in names]
        self._touched = {name: rows for name, rows in self._touched.items() if name in names}
        pieces = [piece for piece in self.spooled.pieces if piece.end > mark - self._start]
        spooled = [
            [one for one in decode_operations(data, self.spooled.dictionary.shapes) if isinstance(one, RowRun) and one.table.name in names]
            for data in (self.spooled.read(pieces) if names else ())
        ]
        self._drop(mark)
        for piece, operations in zip(pieces, spooled, strict=False):
            if operations:
                end = self.spooled.end + sum(operation.count for operation in operations)
                self._spool_piece(operations, end, {name: piece.reached[name] for name in names & piece.reached.keys()})
        self.events += kept
        self.unknown = None

    def scan_table(self, name: str) -> int:
        """Capture every row of a table as an insert; the number of rows. For CREATE TABLE AS, whose rows the hook does not see."""
        self.prepare()
        known = self._known[name]
        table = known.table
        if table.shape.without_rowid:
            return 0  # CREATE TABLE AS makes none of these
        columns = ", ".join(map(quote, table.shape.columns))
        width = max(table.real) + 1
        count = 0
        for rowid, *values in self._connection.execute(f"select {table.rowid_name}, {columns} from main.{quote(name)} order by 1"):
            whole: list[Any] = [None] * width
            for position, value in zip(table.real, values, strict=True):
                whole[position] = value
            self._add_stored((known.insert, rowid, None, tuple(whole), None), known)
            count += 1
            if self.poison is not None:
                break
        return count

    def operations(self, start: int = 0) -> list[Operation]:
        """The changes since a mark, as the operations of a transaction, without those that are spooled."""
        return list(self._operations(self._since(start) if start else self.events))

    def _since(self, mark: int) -> list[CapturedRow]:
        """The changes in memory since a mark."""
        return self.events[max(self._start, mark - self.spooled.end) :]

    def only_row(self, start: int) -> RowChange | None:
        """The change since a mark, where there is one and it can be logged as a `RowChange`."""
        events = self.events
        if len(events) != start + 1 or events[start][0] == _OPERATION or self.spooled.pieces:
            return None
        return self._groups[events[start][0]].change_of(events[start])

    def _group(self, event: CapturedRow) -> RowGroup | None:
        """The group of a captured row; None for another operation."""
        return None if event[0] == _OPERATION else self._groups[event[0]]

    def _operations(self, events: list[CapturedRow]) -> Iterator[Operation]:
        for number, members in groupby(events, key=itemgetter(0)):
            if number == _OPERATION:
                yield from (member[1] for member in members)
            elif len(rows := list(members)) == 1:
                yield single_row_run(self._groups[number], rows[0])
            else:
                yield row_run(self._groups[number], rows)


def _no_room(error: apsw.Error) -> SqlError:
    return SqlError(
        "53100", f"the changes of the transaction cannot be spooled: {error}", hint="Make room where temporary files are (SQLITE_TMPDIR)."
    )
