"""The scope of names at one place of a statement: the columns with their types, and the parameters' types as they are resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.declared_types import Kind, parse_declared
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.values import types

Tables = Mapping[str, Sequence[tuple[str, str]]]
"""Lower-case table name to (column, declared type) in order."""
Outputs = list[tuple[str, int | None]]
"""The columns of a query: name and type, None for an undetermined type."""

_ROW_NUMBERS = ("rowid", "_rowid_", "oid")


def column_oid(declared: str) -> int | None:
    """The type of a column with this declaration; None where PostgreSQL has no such type."""
    oid = types.oid_of_declared(declared)
    if oid == types.TEXT and not any(word in declared.upper() for word in ("CHAR", "TEXT", "CLOB")):
        return None
    return oid


BLANKS_GO = (0,)
"""The modifiers of a column of type char(n): blanks at the end of a text are not stored."""
_CHAR = re.compile(r"(NATIONAL )?(N?CHAR|CHARACTER|BPCHAR) ?\(", re.IGNORECASE)


def column_modifiers(declared: str) -> tuple[int, ...]:
    """Precision and scale of a column to which numbers are rounded when they are stored, or `BLANKS_GO`; empty for all others."""
    if _CHAR.match(declared):
        return BLANKS_GO
    found = parse_declared(declared)
    return (found.precision, found.scale) if found.kind is Kind.NUMERIC and found.precision is not None else ()


@dataclass(slots=True, eq=False)
class Relation:
    """A table, query or function in FROM. `columns` is None where they are unknown."""

    name: str
    columns: Outputs | None
    is_table: bool = False
    modifiers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By column, in lower case."""
    table: str = ""
    """The table's own name, in lower case."""

    def oid(self, column: str) -> tuple[bool, int | None]:
        """Whether there is such a column, and its type."""
        for name, oid in self.columns or ():
            if name.lower() == column.lower():
                return True, oid
        if self.is_table and column.lower() in _ROW_NUMBERS:
            return True, types.INT8
        return False, None


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that a bare name may refer to, and that a bare star includes."""

    name: str
    oid: int | None
    text: str
    """The column, or the merged column of USING, in SQLite's words; empty where it has no unambiguous name."""
    relation: Relation | None
    """None for a merged column of two relations."""


class ResolvedColumn(NamedTuple):
    """The meaning of a column's name."""

    exists: bool
    """The column certainly exists."""
    oid: int | None = None
    """Its type; None where it is undetermined."""
    relation: Relation | None = None
    """Its relation; None where it is undetermined, or the column is merged or a name of the select list."""


@dataclass(slots=True)
class Scope:
    """The relations of one query, and those of the queries around it."""

    parent: Scope | None = None
    relations: list[Relation] = field(default_factory=list)
    common: dict[str, Outputs | None] = field(default_factory=dict)
    """Common table expressions by name."""
    aliases: dict[str, int | None] = field(default_factory=dict)
    """Names of the select list, which ORDER BY and GROUP BY may use."""
    hidden: frozenset[str] = frozenset()
    """Names of the select list, in lower case, that are not in scope here, although SQLite would resolve them to their expressions."""
    visible: list[Visible] | None = None
    """The columns of FROM, where all of them are known."""
    has_merged: bool = False
    """USING or NATURAL makes columns one in FROM."""
    declared: frozenset[str] = frozenset()
    """All names of the WITH list, in lower case: SQLite sees them in the whole list."""

    def common_named(self, name: str) -> tuple[bool, Outputs | None]:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.common:
                return True, scope.common[name]
            scope = scope.parent
        return False, None

    def has(self, column: str) -> bool:
        """Whether FROM has a column of this name, or may have one."""
        if any(relation.columns is None for relation in self.relations):
            return False
        return any(relation.oid(column)[0] for relation in self.relations)

    def is_declared(self, name: str) -> bool:
        """Whether SQLite resolves the name, in lower case, to a common table expression."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.declared:
                return True
            scope = scope.parent
        return False

    def column(self, name: nodes.Name) -> ResolvedColumn:
        """Resolve a column in this query, then in the queries around it.

        Raises:
            SqlError: 42702 for a bare name of two columns, 42P01 for an unknown table, 42703 for a name of the select list that
                SQLite would resolve here.
        """
        column, owner = name.last.lower(), name.parts[-2].lower() if len(name.parts) > 1 else None
        is_hidden, is_owned = False, owner is None
        scope: Scope | None = self
        while scope is not None:
            found = scope._resolve_here(column, owner)
            if found is not None and is_hidden:
                raise SqlError(
                    "0A000",
                    f'column "{name.last}" of the query around has the name of a column of the select list, which SQLite would take',
                    hint="Write the table's name before it, or give the column of the select list another name.",
                    position=name.start + 1,
                )
            if found is not None:
                return found
            if any(owner == relation.name.lower() for relation in scope.relations):
                is_owned = True
            is_hidden = is_hidden or (owner is None and column in scope.hidden and not any(one.columns is None for one in scope.relations))
            scope = scope.parent
        if is_hidden:
            raise SqlError("42703", f'column "{name.last}" does not exist', position=name.start + 1)
        if not is_owned:
            raise SqlError("42P01", f'missing FROM-clause entry for table "{name.parts[-2]}"', position=name.start + 1)
        return ResolvedColumn(exists=False)

    def _resolve_here(self, column: str, owner: str | None) -> ResolvedColumn | None:
        """The column among this query's own relations and names; None where it is not there."""
        if owner is None and self.visible is not None:
            shown = [one for one in self.visible if one.name.lower() == column]
            if len(shown) > 1:
                raise SqlError("42702", f'column reference "{column}" is ambiguous')
            if shown:
                return ResolvedColumn(True, shown[0].oid, shown[0].relation)
        for relation in self.relations:
            if owner is None or relation.name.lower() == owner:
                found, oid = relation.oid(column)
                if found:
                    return ResolvedColumn(True, oid, relation)
        if owner is None and column in self.aliases:
            return ResolvedColumn(True, self.aliases[column])
        return None

    def is_known(self) -> bool:
        """Whether the columns of all relations in scope are known, so that a name that is not found does not exist."""
        scope: Scope | None = self
        while scope is not None:
            if any(relation.columns is None for relation in scope.relations):
                return False
            scope = scope.parent
        return True


class Parameters:
    """The parameters' types: declared by the client, or determined by the first use."""

    def __init__(self, given: Sequence[int]) -> None:
        self._given = given
        self.known: dict[int, int] = {}
        self.numbers: set[int] = set()

    def oid(self, number: int) -> int:
        """The parameter's type; UNKNOWN until a use determines it."""
        self.numbers.add(number)
        given = self._given[number - 1] if number <= len(self._given) else 0
        if given not in (0, types.UNKNOWN):
            return given
        return self.known.get(number, types.UNKNOWN)

    def declare(self, number: int, oid: int) -> int:
        """A place needs this type; the one that it has then."""
        if self.oid(number) == types.UNKNOWN:
            self.known[number] = oid
        return self.oid(number)

    def all(self) -> tuple[int, ...]:
        """The types of all parameters up to the largest number; text where no use determines one.

        Raises:
            SqlError: 42P18 for a number that the statement does not use and whose type the client does not declare.
        """
        count = max(max(self.numbers, default=0), len(self._given) if self.numbers else 0)
        found = []
        for number in range(1, count + 1):
            oid = self._given[number - 1] if number <= len(self._given) else 0
            if number not in self.numbers and oid in (0, types.UNKNOWN):
                raise SqlError("42P18", f"could not determine data type of parameter ${number}", hint="Use every number from $1 on.")
            oid = oid if oid not in (0, types.UNKNOWN) else self.known.get(number, types.TEXT)
            found.append(oid)
        return tuple(found)
