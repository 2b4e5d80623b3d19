"""How the rows of one table are captured: which groups they make, which checks they need, and how many bytes they take at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.records import RowKind
from triplicate.sql.executor.captured_rows import RowGroup
from triplicate.sql.storage.sqlite_schema import Table

MOST_PER_VALUE = 12
"""Upper bound on the bytes of a value without its text or blob: eight, a tag, and its part of the column's header."""
MOST_PER_CHARACTER = 4

_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _RowChecks:
    """The checks of rows whose values have certain types."""

    inspections: tuple[tuple[int, Callable[[Any], bool]], ...] | None
    """Index and check of each value that its type alone does not decide; None where a type is refused."""
    lengths: tuple[tuple[int, int], ...]
    """Index of each text and blob, and upper bound on the bytes of one of its characters."""
    most: int
    """Upper bound on the bytes of such a row, without its texts and blobs."""


_PER_CHARACTER: dict[type, int] = {str: MOST_PER_CHARACTER, bytes: 1}
_REMEMBERED = 1024
"""Upper bound on the combinations of types that are remembered for one table."""


class TableCapture:
    """The properties of one table that the hook needs, looked up by name once per change."""

    def __init__(self, table: Table, full: bool, groups: list[RowGroup]) -> None:
        """
        Args:
            groups: the groups of all tables, to which those of this table are added.
        """
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
        first = len(groups)
        self.insert, self.update, self.moved, self.update_keyed, self.moved_keyed, self.delete = range(first, first + 6)
        groups += (
            RowGroup(table, RowKind.INSERT),
            RowGroup(table, RowKind.UPDATE, full=full),
            RowGroup(table, RowKind.UPDATE, moved=True, full=full),
            RowGroup(table, RowKind.UPDATE, keyed=True, full=full),
            RowGroup(table, RowKind.UPDATE, moved=True, keyed=True, full=full),
            RowGroup(table, RowKind.DELETE, keyed=self.keyed, full=full),
        )

    def plan(self, kinds: tuple[type, ...]) -> _RowChecks:
        """The checks for a new combination of value types."""
        values = [kind for index, kind in enumerate(kinds) if index in self._logged]
        plan = _RowChecks(
            self._rules.inspections(kinds),
            tuple((index, _PER_CHARACTER[kind]) for index, kind in enumerate(kinds) if kind in _PER_CHARACTER and index in self._logged),
            (len(values) + 2) * MOST_PER_VALUE,
        )
        if len(self.plans) < _REMEMBERED:
            self.plans[kinds] = plan
        return plan

    def broken(self, row: _Row, old: _Row | None) -> SqlError | None:
        """Why a row may not be stored, or None. Values that an update does not change are not checked: earlier releases stored any."""
        for rule in self._rules.refused(row):
            if old is None or differs(old[rule.index], row[rule.index]):
                return rule.refusal(self.table.shape.name, row[rule.index])
        return None

    def keys_of(self, row: _Row) -> _Row:
        """The values of the primary key."""
        return tuple([row[index] for index in self.keys])


def most_bytes(row: _Row | None) -> int:
    """Upper bound on the bytes of a row's old values and rowid."""
    if row is None:
        return MOST_PER_VALUE
    texts = sum(len(value) * MOST_PER_CHARACTER for value in row if type(value) in (str, bytes))
    return (len(row) + 1) * MOST_PER_VALUE + texts


def differs(one: Value, other: Value) -> bool:
    """Whether two values are not the same, type included."""
    return type(one) is not type(other) or one != other
