"""Captured rows, and the operations of a transaction that they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.records import Column, RowChange, RowKind, RowRun, row_operation
from triplicate.sql.storage.sqlite_schema import Table

CapturedRow = tuple[Any, ...]
"""Number of its group, rowid, new rowid, new row, old row; None for what it does not have. See `ChangeCapture`."""


class RowGroup:
    """Consecutive captured rows of one group make one run."""

    __slots__ = ("full", "is_whole", "keyed", "kind", "moved", "operation", "stored", "table")

    def __init__(self, table: Table, kind: RowKind, *, moved: bool = False, keyed: bool = False, full: bool = False) -> None:
        self.table = table
        self.kind = kind
        self.moved = moved
        self.keyed = keyed
        self.full = full
        shape = table.shape
        self.operation = row_operation(kind, moved=moved and not shape.without_rowid, keys=keyed, old=full)
        self.stored = tuple(position for column, position in enumerate(table.real) if column != shape.rowid_column)
        """Positions of the columns that the log holds beside the rowid."""
        self.is_whole = table.whole and shape.rowid_column < 0
        """Whether these are all columns."""

    def change_of(self, event: CapturedRow) -> RowChange | None:
        """The change of a row, as the only one of its transaction; None where its operation is not that of the group."""
        _, rowid, new_rowid, new, old = event
        if old is None and (self.keyed or self.full):
            return None
        shape = self.table.shape
        values: list[Value] = [] if shape.without_rowid else [rowid, new_rowid] if self.moved else [rowid]
        if self.keyed:
            values += [old[self.table.real[index]] for index in shape.key] if self.full else old
        if new is not None:
            values += new if self.is_whole else [new[position] for position in self.stored]
        if self.full:
            values += old if self.is_whole else [old[position] for position in self.stored]
        return RowChange(shape, self.operation, values)


def row_run(group: RowGroup, events: Sequence[CapturedRow]) -> RowRun:
    """The run of consecutive rows of one group."""
    table = group.table
    shape = table.shape
    run = RowRun(shape, group.kind, len(events))
    if not shape.without_rowid:
        run.rowids = _column(events, 1)
        if group.moved:
            run.new_rowids = _column(events, 2)
    if group.kind is not RowKind.DELETE:
        run.new = _columns(_column(events, 3), table.real)
    if events[0][4] is not None:
        old = _column(events, 4)
        if group.full:
            run.old = _columns(old, table.real)
        if group.keyed:
            run.keys = _columns(old, [table.real[index] for index in shape.key] if group.full else range(len(shape.key)))
    return run


def single_row_run(group: RowGroup, event: CapturedRow) -> RowRun:
    """The run of one row, as `row_run` makes it."""
    table = group.table
    shape = table.shape
    _, rowid, new_rowid, new, old = event
    if shape.without_rowid:
        run = RowRun(shape, group.kind, 1)
    else:
        run = RowRun(shape, group.kind, 1, (rowid,), (new_rowid,) if group.moved else None)
    if new is not None:
        columns = list(zip(new))
        run.new = columns if table.whole else [columns[position] for position in table.real]
    if old is not None:
        columns = list(zip(old))
        if group.keyed:
            run.keys = [columns[table.real[index]] for index in shape.key] if group.full else columns
        if group.full:
            run.old = columns if table.whole else [columns[position] for position in table.real]
    return run


def _columns(rows: Sequence[CapturedRow], positions: Iterable[int]) -> list[Column]:
    return [_column(rows, position) for position in positions]


def _column(rows: Sequence[CapturedRow], position: int) -> list[Any]:
    # `zip` would make an iterator for each row, and these cause further collections of garbage.
    return list(map(itemgetter(position), rows))
