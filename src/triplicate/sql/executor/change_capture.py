"""Capturing the row changes that SQLite makes, in order, to become the operations of a transaction.

Rows come from SQLite's pre-update hook. These rules make the capture complete, see `docs/sql.md`. The hook never raises: an exception
would not stop the change. Rows of a failed statement are cut off again. Virtual tables are flushed before the rows are collected. The
tables are read for changes that the hook does not see: virtual generated columns, rows of CREATE TABLE AS, counters of AUTOINCREMENT.

The hook also sees each value before it is stored. A value that does not fit its column's declared type fails the statement, and so does
a transaction that has become too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.encoded_size import MOST_PER_CHARACTER, MOST_PER_VALUE, ByteCount
from triplicate.sql.core.lexer import quote
from triplicate.sql.core.records import Column, Operation, RowKind, RowRun, SettingChange
from triplicate.sql.storage.sqlite_schema import INTERNAL_PREFIX, Table, has_virtual_tables, is_internal, load_tables

MAX_CHANGES = 1_000_000
"""Upper bound on the row changes of one transaction. A record of 4 MiB holds far fewer, except of rows without values."""

SMALLER = "Use several smaller transactions."
_TOO_LARGE = "54000"

_LAST_NUMBER = 2**63 - 1

_Row = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class _Group:
    """Consecutive captured rows that share one group object make one run."""

    table: Table
    kind: RowKind
    moved: bool = False
    keyed: bool = False
    full: bool = False


@dataclass(frozen=True, slots=True)
class _RowChecks:
    """The checks of rows whose values have certain types."""

    inspections: tuple[tuple[int, Callable[[Any], bool]], ...] | None
    """Index and check of each value that its type alone does not decide; None where a type is refused."""
    texts: tuple[int, ...]
    blobs: tuple[int, ...]
    most: int
    """Upper bound on the bytes of such a row, without its texts and blobs."""


_REMEMBERED = 1024
"""Upper bound on the combinations of types that are remembered for one table."""


class _TableCapture:
    """The properties of one table that the hook needs, looked up by name once per change."""

    def __init__(self, table: Table, full: bool) -> None:
        shape = table.shape
        self.table = table
        self.full = full
        self.virtual = table.has_virtual_columns
        self.keyed = shape.without_rowid or (bool(shape.key) and shape.rowid_column < 0)
        self.keys = tuple(table.real[index] for index in shape.key)
        self._rules = table.rules
        self._logged = frozenset(table.real)
        self.plans: dict[tuple[type, ...], _RowChecks] = {}
        """The checks for each combination of value types that has occurred."""
        self.insert = _Group(table, RowKind.INSERT)
        self.update = _Group(table, RowKind.UPDATE, full=full)
        self.moved = _Group(table, RowKind.UPDATE, moved=True, full=full)
        self.update_keyed = _Group(table, RowKind.UPDATE, keyed=True, full=full)
        self.moved_keyed = _Group(table, RowKind.UPDATE, moved=True, keyed=True, full=full)
        self.delete = _Group(table, RowKind.DELETE, keyed=self.keyed, full=full)

    def plan(self, kinds: tuple[type, ...]) -> _RowChecks:
        """The checks for a new combination of value types."""
        values = [kind for index, kind in enumerate(kinds) if index in self._logged]
        plan = _RowChecks(
            self._rules.inspections(kinds),
            tuple(index for index, kind in enumerate(kinds) if kind is str and index in self._logged),
            tuple(index for index, kind in enumerate(kinds) if kind is bytes and index in self._logged),
            (len(values) + 2) * MOST_PER_VALUE,
        )
        if len(self.plans) < _REMEMBERED:
            self.plans[kinds] = plan
        return plan

    def broken(self, row: _Row, old: _Row | None) -> SqlError | None:
        """Why a row may not be stored, or None. Values that an update does not change are not checked: earlier releases stored any."""
        for rule in self._rules.refused(row):
            if old is None or _differs(old[rule.index], row[rule.index]):
                return rule.refusal(self.table.shape.name, row[rule.index])
        return None

    def keys_of(self, row: _Row) -> _Row:
        """The values of the primary key."""
        return tuple([row[index] for index in self.keys])


class ChangeCapture:
    """The changes of the open transaction on one connection.

    `events` holds tuples whose first item is a group (a captured row: group, rowid, new rowid, new row, old row) or an operation.
    A mark is its length; cutting back to a mark drops the later changes.
    """

    def __init__(self, connection: apsw.Connection, max_bytes: int) -> None:
        """
        Args:
            max_bytes: upper bound on the encoded changes of one transaction.
        """
        self._connection = connection
        self._bytes = ByteCount(lambda start, end: _runs(self.events[start:end]), max_bytes)
        self._known: dict[str, _TableCapture] = {}
        self._stale = True
        self.full: frozenset[str] = frozenset()
        self._touched: dict[str, dict[int, bool]] = {}
        self._stored: set[tuple[str, object]] | None = None
        """The rows that the statement has stored. An INSERT … ON CONFLICT DO UPDATE must not change one of them again."""
        self._counts = False
        self._has_virtual_tables = False
        self.events: list[_Row] = []
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
        self._stored = set() if "conflict" in sql.lower() else None
        if self._stale:
            self._known = {name: _TableCapture(table, name in self.full) for name, table in load_tables(self._connection).items()}
            self._counts = bool(self._connection.execute("select 1 from main.sqlite_schema where name = 'sqlite_sequence'").fetchall())
            self._has_virtual_tables = has_virtual_tables(self._connection)
            self._stale = False

    def tables(self) -> list[Table]:
        """The tables as of the last `prepare`."""
        return [known.table for known in self._known.values()]

    @property
    def overflowing(self) -> bool:
        """Whether the transaction has become too large, so that the statement must stop at once."""
        return self.poison is not None and self.poison.sqlstate == _TOO_LARGE

    def begin(self) -> None:
        """Drop all changes: a transaction begins."""
        self.events.clear()
        self._bytes.begin(0)
        self._touched.clear()
        self.poison = self.unknown = None

    def begin_next(self) -> None:
        """Later changes belong to another transaction, whose bytes are counted from zero."""
        self._bytes.begin(len(self.events))

    def mark(self) -> int:
        return len(self.events)

    def cut(self, mark: int) -> None:
        del self.events[mark:]
        self._bytes.cut(mark)
        self._touched.clear()
        self.poison = self.unknown = None

    def add(self, operation: Operation) -> None:
        self.events.append((operation,))

    def flush_virtual_tables(self) -> None:
        """Have virtual tables write their shadow tables, which they do when a savepoint begins or a transaction ends."""
        if not self._has_virtual_tables and not self._stale:
            return
        self._connection.execute("savepoint triplicate_flush; release triplicate_flush")

    def _on_change(self, change: Any) -> None:
        try:
            if change.database_name != "main":
                return
            name = change.table_name
            known = self._known.get(name)
            if known is None:
                if not name.startswith(INTERNAL_PREFIX):
                    self._unknown(name)
                return
            if self._stored is not None and change.depth == 0:
                self._watch(known, change, self._stored)
            if known.virtual:
                self._touch(known, change)
                return
            if change.blob_write >= 0:
                self._spoil(SqlError("0A000", f"incremental writes of table {change.table_name!r} cannot be replicated"))
                return
            operation = change.opcode
            if operation == apsw.SQLITE_INSERT:
                self._add((known.insert, change.rowid_new, None, change.new, None), known, change)
            elif operation == apsw.SQLITE_DELETE:
                self._delete(known, change)
            else:
                self._update(known, change)
        except UnicodeDecodeError:
            self._spoil(SqlError("22021", f"table {change.table_name!r} was given text that is not valid UTF-8"))
        except Exception as error:  # noqa: BLE001  an exception would not stop the change; see the module's docstring
            self._spoil(SqlError("XX000", f"a change could not be captured: {type(error).__name__}: {error}"))

    def _watch(self, known: _TableCapture, change: Any, stored: set[tuple[str, object]]) -> None:
        """Refuse the second change of one row. Changes by triggers are not refused."""
        is_keyed = known.table.shape.without_rowid
        if change.opcode == apsw.SQLITE_UPDATE:
            old: object = known.keys_of(change.old) if is_keyed else change.rowid
            if (change.table_name, old) in stored:
                self._spoil(
                    SqlError(
                        "21000",
                        "ON CONFLICT DO UPDATE command cannot affect row a second time",
                        hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
                    )
                )
        if change.opcode != apsw.SQLITE_DELETE:
            stored.add((change.table_name, known.keys_of(change.new) if is_keyed else change.rowid_new))

    def _spoil(self, reason: SqlError) -> None:
        if self.poison is None:
            self.poison = reason

    def _add(self, event: _Row, known: _TableCapture, change: Any) -> None:
        """Capture a row that is stored, if its values are accepted.

        Args:
            change: the hook's object, None for a row that was read from its table.
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
        for index in plan.texts:
            text = row[index]
            size += len(text) if text.isascii() else len(text) * MOST_PER_CHARACTER
        for index in plan.blobs:
            size += len(row[index])
        self._count(size)

    def _refuse(self, known: _TableCapture, row: _Row, change: Any) -> None:
        refusal = known.broken(row, change.old if change is not None and change.opcode == apsw.SQLITE_UPDATE else None)
        if refusal is not None:
            self._spoil(refusal)

    def _count(self, size: int) -> None:
        """Count a change whose encoded size is at most the given number of bytes."""
        count, found = len(self.events), self._bytes
        found.most += size
        if found.most > found.room and found.exceeds(count):
            reason = f"the transaction's changes take more than {found.limit} bytes, which row {count} goes beyond"
            self._spoil(SqlError(_TOO_LARGE, reason, hint=SMALLER))
        if count > MAX_CHANGES:
            self._spoil(SqlError(_TOO_LARGE, f"the transaction changes more than {MAX_CHANGES} rows", hint=SMALLER))

    def _delete(self, known: _TableCapture, change: Any) -> None:
        kept = change.old if known.full else known.keys_of(change.old) if known.keyed else None
        self.events.append((known.delete, change.rowid, None, None, kept))
        self._count(_most(kept))

    def _update(self, known: _TableCapture, change: Any) -> None:
        rowid, new_rowid, new = change.rowid, change.rowid_new, change.new
        moved = rowid != new_rowid
        if not known.keyed and not known.full:
            self._add((known.moved if moved else known.update, rowid, new_rowid, new, None), known, change)
            return
        old = change.old
        keyed = known.keyed and (known.table.shape.without_rowid or any(_differs(old[index], new[index]) for index in known.keys))
        plain, with_keys = (known.moved, known.moved_keyed) if moved else (known.update, known.update_keyed)
        kept = old if known.full else known.keys_of(old) if keyed else None
        self._bytes.most += _most(kept)
        self._add((with_keys if keyed else plain, rowid, new_rowid, new, kept), known, change)

    def _unknown(self, name: str) -> None:
        if not is_internal(name) and not name.lower().startswith("sqlite_"):
            self.unknown = name

    def _touch(self, known: _TableCapture, change: Any) -> None:
        rows = self._touched.setdefault(known.table.shape.name, {})
        if change.opcode != apsw.SQLITE_INSERT:
            rows.setdefault(change.rowid, True)
        if change.opcode != apsw.SQLITE_DELETE:
            rows.setdefault(change.rowid_new, False)
        if len(rows) > MAX_CHANGES:
            self._spoil(SqlError(_TOO_LARGE, f"the statement changes more than {MAX_CHANGES} rows", hint=SMALLER))

    def end_statement(self) -> None:
        """For tables with virtual columns, whose values the hook cannot read: delete every changed row that existed before the
        statement, then insert every one that exists now.
        """
        for name, rows in self._touched.items():
            known = self._known[name]
            table = known.table
            for rowid, existed in rows.items():
                if existed:
                    self.events.append((known.delete, rowid, None, None, None))
            for rowid in rows:
                row = None if self.poison is not None else self._final_row(table, rowid)
                if row is not None:
                    self._add((known.insert, rowid, None, row, None), known, None)
        self._touched.clear()

    def _final_row(self, table: Table, rowid: int) -> _Row | None:
        columns = ", ".join(map(quote, table.shape.columns))
        cursor = self._connection.execute(f"select {columns} from main.{quote(table.shape.name)} where {table.rowid_name} = ?", (rowid,))
        row = cursor.fetchone()
        if row is None:
            return None
        whole: list[Value] = [None] * (max(table.real) + 1)
        for position, value in zip(table.real, row, strict=True):
            whole[position] = value
        return tuple(whole)

    def counters(self) -> dict[str, int]:
        """The counters of AUTOINCREMENT by table."""
        if not self._counts:
            return {}
        return {str(name): int(value or 0) for name, value in self._connection.execute("select name, seq from main.sqlite_sequence")}

    def used_up(self) -> bool:
        """Whether a counter of AUTOINCREMENT is, or was in the failed transaction, at its last number.

        SQLite reports the next number as a full disk, and undoes the transaction. A row whose number was changed by an update counts as
        well.
        """
        if any(isinstance(event[0], _Group) and _LAST_NUMBER in event[1:3] for event in self.events):
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
        now = self.counters() if self._counts else {}
        if not now:
            return now
        reached = dict(before)
        for event in self.events[mark:]:
            group = event[0]
            if isinstance(group, _Group) and group.kind is RowKind.INSERT and (name := group.table.shape.name) in now:
                reached[name] = max(event[1], reached.get(name) or 0)
        for name, value in now.items():
            if value != reached.get(name) or (value <= 0 and name not in before):
                self.add(SettingChange(f"sequence:{name}", value))
        return now

    def keep_only(self, mark: int, names: frozenset[str]) -> None:
        """Drop the changes since `mark`, except rows of these tables: side effects of a schema change on other tables."""
        kept = [event for event in self.events[mark:] if isinstance(event[0], _Group) and event[0].table.shape.name in names]
        self._touched = {name: rows for name, rows in self._touched.items() if name in names}
        self.events[mark:] = kept
        self._bytes.cut(mark)
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
            self._add((known.insert, rowid, None, tuple(whole), None), known, None)
            count += 1
            if self.poison is not None:
                break
        return count

    def operations(self, start: int = 0) -> list[Operation]:
        """The changes since a mark, as the operations of a transaction."""
        events = self.events[start:] if start else self.events
        if len(events) == 1 and isinstance(group := events[0][0], _Group):
            return [_run(group, events)]
        return list(_operations(events))


def _operations(events: list[_Row]) -> Iterator[Operation]:
    for group, members in groupby(events, key=itemgetter(0)):
        if isinstance(group, _Group):
            yield _run(group, list(members))
        else:
            yield from (member[0] for member in members)


def _runs(events: list[_Row]) -> Iterator[RowRun]:
    return (operation for operation in _operations(events) if isinstance(operation, RowRun))


def _most(row: _Row | None) -> int:
    """Upper bound on the bytes of a row's old values and rowid."""
    if row is None:
        return MOST_PER_VALUE
    texts = sum(len(value) * MOST_PER_CHARACTER for value in row if type(value) in (str, bytes))
    return (len(row) + 1) * MOST_PER_VALUE + texts


def _differs(one: Value, other: Value) -> bool:
    return type(one) is not type(other) or one != other


def _run(group: _Group, rows: Sequence[_Row]) -> RowRun:
    table = group.table
    shape = table.shape
    kind = group.kind
    run = RowRun(shape, kind, len(rows))
    _, rowids, new_rowids, new, old = zip(*rows, strict=True)
    if not shape.without_rowid:
        run.rowids = rowids
        if group.moved:
            run.new_rowids = new_rowids
    if kind is not RowKind.DELETE:
        run.new = _columns(table, new)
    if group.keyed and old[0] is not None:
        columns = list(zip(*old, strict=True))
        run.keys = [columns[table.real[index]] for index in shape.key] if group.full else columns
    if group.full and old[0] is not None:
        run.old = _columns(table, old)
    return run


def _columns(table: Table, rows: Sequence[_Row]) -> Sequence[Column]:
    columns = list(zip(*rows, strict=True))
    return columns if table.whole else [columns[position] for position in table.real]
