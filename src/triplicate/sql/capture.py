"""Row changes as SQLite makes them: the pre-update hook's calls gathered in order, to become a transaction's operations.

The rules that make this complete are those of `docs/sql.md`: the hook never raises (an exception there would not stop the
change), rows of a failed statement are cut off again, virtual tables are flushed before the rows are taken, and what the hook
cannot see (virtual generated columns, rows of CREATE TABLE AS, counters of AUTOINCREMENT) is read from the tables instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from .core.columns import Value
from .core.records import Column, Operation, RowKind, RowRun, SettingChange
from .core.scan import quote
from .schema import Table, is_internal, load_tables

MAX_CHANGES = 1_000_000
"""Row changes in one transaction; far beyond what a record of 4 MiB can hold, so it only bounds memory."""

_Row = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class _Group:
    """Consecutive captured rows that share one group object make one run."""

    table: Table
    kind: RowKind
    moved: bool = False
    keyed: bool = False
    full: bool = False


class _Known:
    """What the hook needs of one table, looked up by name once per change."""

    def __init__(self, table: Table, full: bool) -> None:
        shape = table.shape
        self.table = table
        self.full = full
        self.virtual = table.has_virtual_columns
        self.keyed = shape.without_rowid or (bool(shape.key) and shape.rowid_column < 0)
        self.keys = tuple(table.real[index] for index in shape.key)
        self.insert = _Group(table, RowKind.INSERT)
        self.update = _Group(table, RowKind.UPDATE, full=full)
        self.moved = _Group(table, RowKind.UPDATE, moved=True, full=full)
        self.update_keyed = _Group(table, RowKind.UPDATE, keyed=True, full=full)
        self.moved_keyed = _Group(table, RowKind.UPDATE, moved=True, keyed=True, full=full)
        self.delete = _Group(table, RowKind.DELETE, keyed=self.keyed, full=full)


class Capture:
    """The changes of the open transaction on one connection.

    `events` holds tuples whose first item is a group (a captured row: group, rowid, new rowid, new row, old row) or an operation.
    A mark is its length; cutting back to a mark forgets what came after it.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, _Known] = {}
        self._stale = True
        self.full: frozenset[str] = frozenset()
        self._touched: dict[str, dict[int, bool]] = {}
        self._counts = False
        self.events: list[_Row] = []
        self.poison: tuple[str, str] | None = None
        """SQLSTATE and message of what made the captured rows incomplete; the statement must be rolled back."""
        self.unknown: str | None = None
        """A table that was changed but is not known. Only a statement that makes tables may meet one."""
        connection.preupdate_hook(self._on_change)

    def schema_changed(self, full: frozenset[str]) -> None:
        """Read the tables again before the next statement. `full`: the tables whose old rows are logged too."""
        self._stale = True
        self.full = full

    def prepare(self) -> None:
        """Call before each user statement: the hook itself must not query."""
        if self._stale:
            self._known = {name: _Known(table, name in self.full) for name, table in load_tables(self._connection).items()}
            self._counts = bool(self._connection.execute("select 1 from main.sqlite_schema where name = 'sqlite_sequence'").fetchall())
            self._stale = False

    def tables(self) -> list[Table]:
        """The tables as of the last `prepare`."""
        return [known.table for known in self._known.values()]

    @property
    def overflowing(self) -> bool:
        """True when the transaction changes too many rows to go on."""
        return len(self.events) > MAX_CHANGES

    def mark(self) -> int:
        return len(self.events)

    def cut(self, mark: int) -> None:
        del self.events[mark:]
        self._touched.clear()
        self.poison = self.unknown = None

    def add(self, operation: Operation) -> None:
        self.events.append((operation,))

    def flush_virtual_tables(self) -> None:
        """Full-text and other virtual tables write their shadow tables only when a savepoint begins or a transaction ends."""
        self._connection.execute("savepoint triplicate_flush; release triplicate_flush")

    def _on_change(self, change: Any) -> None:
        try:
            if change.database_name != "main":
                return
            known = self._known.get(change.table_name)
            if known is None:
                self._unknown(change.table_name)
                return
            if known.virtual:
                self._touch(known, change)
                return
            if change.blob_write >= 0:
                self.poison = ("0A000", f"incremental writes of table {change.table_name!r} cannot be replicated")
                return
            operation = change.opcode
            if operation == apsw.SQLITE_INSERT:
                self.events.append((known.insert, change.rowid_new, None, change.new, None))
            elif operation == apsw.SQLITE_DELETE:
                self.events.append((known.delete, change.rowid, None, None, change.old if known.keyed or known.full else None))
            else:
                self._update(known, change)
            if len(self.events) > MAX_CHANGES:
                self.poison = ("54000", f"the transaction changes more than {MAX_CHANGES} rows; use several")
        except UnicodeDecodeError:
            self.poison = ("22021", f"table {change.table_name!r} was given text that is not valid UTF-8")
        except Exception as error:  # noqa: BLE001  an exception would not stop the change, only hide it: see the module's text
            self.poison = ("XX000", f"a change could not be captured: {type(error).__name__}: {error}")

    def _update(self, known: _Known, change: Any) -> None:
        rowid, new_rowid, new = change.rowid, change.rowid_new, change.new
        moved = rowid != new_rowid
        if not known.keyed and not known.full:
            group = known.moved if moved else known.update
            self.events.append((group, rowid, new_rowid, new, None))
            return
        old = change.old
        keyed = known.keyed and (known.table.shape.without_rowid or any(_differs(old[index], new[index]) for index in known.keys))
        plain, with_keys = (known.moved, known.moved_keyed) if moved else (known.update, known.update_keyed)
        group = with_keys if keyed else plain
        self.events.append((group, rowid, new_rowid, new, old))

    def _unknown(self, name: str) -> None:
        if not is_internal(name) and not name.lower().startswith("sqlite_"):
            self.unknown = name

    def _touch(self, known: _Known, change: Any) -> None:
        rows = self._touched.setdefault(known.table.shape.name, {})
        if change.opcode != apsw.SQLITE_INSERT:
            rows.setdefault(change.rowid, True)
        if change.opcode != apsw.SQLITE_DELETE:
            rows.setdefault(change.rowid_new, False)

    def end_statement(self) -> None:
        """For tables with virtual columns, whose values the hook cannot read: delete every touched row that was there before the
        statement, then insert every one that is there now.
        """
        for name, rows in self._touched.items():
            known = self._known[name]
            table = known.table
            for rowid, existed in rows.items():
                if existed:
                    self.events.append((known.delete, rowid, None, None, None))
            for rowid in rows:
                row = self._final_row(table, rowid)
                if row is not None:
                    self.events.append((known.insert, rowid, None, row, None))
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

    def end_transaction(self, mark: int, before: dict[str, int]) -> dict[str, int]:
        """Note the counters of AUTOINCREMENT that the rows captured since `mark` do not lead to by themselves.

        An ignored insert counts without a row to show for it; an update of a rowid that had to be logged as an insert does not.

        Args:
            before: the counters when the transaction began. Returns those of now.
        """
        now = self.counters()
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
        """Forget what was captured since `mark`, except rows of the tables named (a schema change's side effects on others)."""
        kept = [event for event in self.events[mark:] if isinstance(event[0], _Group) and event[0].table.shape.name in names]
        self._touched = {name: rows for name, rows in self._touched.items() if name in names}
        self.events[mark:] = kept
        self.unknown = None

    def scan_table(self, name: str) -> int:
        """Capture every row of a table as inserted; the number of rows. For CREATE TABLE AS, whose rows the hook does not see."""
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
            self.events.append((known.insert, rowid, None, tuple(whole), None))
            count += 1
            if count > MAX_CHANGES:
                self.poison = ("54000", f"the statement makes more than {MAX_CHANGES} rows; use several")
                break
        return count

    def operations(self, start: int = 0) -> list[Operation]:
        """What was captured since a mark, as the operations of a transaction."""
        found: list[Operation] = []
        for group, members in groupby(self.events[start:] if start else self.events, key=itemgetter(0)):
            if isinstance(group, _Group):
                found.append(_run(group, list(members)))
            else:
                found.extend(member[0] for member in members)
        return found


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
        run.keys = [columns[table.real[index]] for index in shape.key]
    if group.full and old[0] is not None:
        run.old = _columns(table, old)
    return run


def _columns(table: Table, rows: Sequence[_Row]) -> Sequence[Column]:
    columns = list(zip(*rows, strict=True))
    return columns if table.whole else [columns[position] for position in table.real]
