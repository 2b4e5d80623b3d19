"""The scope of names in one part of a statement: the columns with their types, and the types of parameters."""

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
"""Maps a table's name, in lower case, to (name, declared type) of its columns in order."""
Outputs = list[tuple[str, int | None]]
"""(name, type) of a query's columns; None for an undetermined type."""

_ROW_NUMBERS = ("rowid", "_rowid_", "oid")


def column_oid(declared: str) -> int | None:
    """The type of a column with this declaration; None if PostgreSQL has no such type."""
    oid = types.oid_of_declared(declared)
    if oid == types.TEXT and not any(word in declared.upper() for word in ("CHAR", "TEXT", "CLOB")):
        return None
    return oid


BLANKS_GO = (0,)
"""The modifiers of a column of type char(n), which stores no blanks at the end of a text."""
_CHAR = re.compile(r"(NATIONAL )?(N?CHAR|CHARACTER|BPCHAR) ?\(", re.IGNORECASE)


def column_modifiers(declared: str) -> tuple[int, ...]:
    """(precision, scale) of a numeric column that declares them, which rounds stored numbers; `BLANKS_GO` for char(n), else empty."""
    if _CHAR.match(declared):
        return BLANKS_GO
    column_type = parse_declared(declared)
    return (column_type.precision, column_type.scale) if column_type.kind is Kind.NUMERIC and column_type.precision is not None else ()


@dataclass(slots=True, eq=False)
class Relation:
    """A table, query or function in FROM. `columns` is None if they are unknown."""

    name: str
    columns: Outputs | None
    is_table: bool = False
    modifiers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Maps a column, in lower case, to its `column_modifiers`."""
    table: str = ""
    """The table's name, not its alias, in lower case."""
    computed: frozenset[str] = frozenset()
    """The columns, in lower case, that a view computes."""

    def is_stored(self, column: str) -> bool:
        """Whether it is the column of a table, whose numerics have few digits."""
        return self.is_table and column.lower() not in self.computed

    def oid(self, column: str) -> tuple[bool, int | None]:
        """(whether there is such a column, its type)."""
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
    """The column, or the merged column of USING, in SQLite's syntax; empty if it has no unambiguous name."""
    relation: Relation | None
    """None for a merged column of two relations."""


class ResolvedColumn(NamedTuple):
    """The meaning of a column's name."""

    exists: bool
    """Whether the column certainly exists."""
    oid: int | None = None
    """Its type; None if it is undetermined."""
    relation: Relation | None = None
    """Its relation; None if it is undetermined, or the column is merged or a name of the select list."""


@dataclass(slots=True)
class Scope:
    """The relations of one query, and those of the enclosing queries."""

    parent: Scope | None = None
    relations: list[Relation] = field(default_factory=list)
    common: dict[str, Outputs | None] = field(default_factory=dict)
    """Maps the name of a common table expression to its columns."""
    aliases: dict[str, int | None] = field(default_factory=dict)
    """Maps a name of the select list, which ORDER BY and GROUP BY may use, to its type."""
    hidden: frozenset[str] = frozenset()
    """Names of the select list, in lower case, that are not in scope here, although SQLite would resolve them to their expressions."""
    unnamed: Mapping[str, Sequence[nodes.SelectItem]] = field(default_factory=dict)
    """The items of the select list without an alias, by the names that queries around know, in lower case: not in scope here either."""
    visible: list[Visible] | None = None
    """The columns of FROM; None unless all are known."""
    has_merged: bool = False
    """Whether USING or NATURAL merges columns in FROM."""
    declared: frozenset[str] = frozenset()
    """All names of the WITH list, in lower case: SQLite sees them in the whole list."""

    def common_named(self, name: str) -> tuple[bool, Outputs | None]:
        """(whether a common table expression of this name is in scope, its columns or None)."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.common:
                return True, scope.common[name]
            scope = scope.parent
        return False, None

    def has(self, column: str) -> bool:
        """Whether FROM has a column of this name; False if the columns of a relation are unknown."""
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
        """Resolve a column in this query, then in the enclosing queries.

        Raises:
            SqlError: 42702 for a bare name of two columns, 42P01 for an unknown table, 42703 for a name of the select list that
                SQLite would resolve here, 0A000 for a column of an enclosing query that SQLite would not resolve.
        """
        column, owner = name.last.lower(), name.parts[-2].lower() if len(name.parts) > 1 else None
        is_hidden, is_owned = False, owner is None
        scope: Scope | None = self
        while scope is not None:
            resolved = scope._resolve_here(column, owner)
            if resolved is not None and is_hidden:
                raise SqlError(
                    "0A000",
                    f'column "{name.last}" of the enclosing query has the name of a column of the select list, which SQLite would use',
                    hint="Write the table's name before it, or give the column of the select list another name.",
                    position=name.start + 1,
                )
            if resolved is not None:
                return resolved
            if any(owner == relation.name.lower() for relation in scope.relations):
                is_owned = True
            for item in scope.unnamed.get(column, ()) if owner is None else ():
                item.is_shadow = True
            is_hidden = is_hidden or (
                owner is None and column in scope.hidden and not any(relation.columns is None for relation in scope.relations)
            )
            scope = scope.parent
        if is_hidden:
            raise SqlError("42703", f'column "{name.last}" does not exist', position=name.start + 1)
        if not is_owned:
            raise SqlError("42P01", f'missing FROM-clause entry for table "{name.parts[-2]}"', position=name.start + 1)
        return ResolvedColumn(exists=False)

    def _resolve_here(self, column: str, owner: str | None) -> ResolvedColumn | None:
        """The column among this query's own relations and names; None if there is none."""
        if owner is None and self.visible is not None:
            shown = [candidate for candidate in self.visible if candidate.name.lower() == column]
            if len(shown) > 1:
                raise SqlError("42702", f'column reference "{column}" is ambiguous')
            if shown:
                return ResolvedColumn(True, shown[0].oid, shown[0].relation)
        for relation in self.relations:
            if owner is None or relation.name.lower() == owner:
                exists, oid = relation.oid(column)
                if exists:
                    return ResolvedColumn(True, oid, relation)
        if owner is None and column in self.aliases:
            return ResolvedColumn(True, self.aliases[column])
        return None

    def is_known(self) -> bool:
        """Whether the columns of all relations in scope are known. A name that does not resolve then does not exist."""
        scope: Scope | None = self
        while scope is not None:
            if any(relation.columns is None for relation in scope.relations):
                return False
            scope = scope.parent
        return True


class Parameters:
    """The parameters' types: declared by the client, or determined by the first use."""

    def __init__(self, declared: Sequence[int]) -> None:
        self._declared = declared
        self.determined: dict[int, int] = {}
        """Maps the number of a parameter to the type that its first use has determined."""
        self.numbers: set[int] = set()
        """Numbers of the parameters in the statement, from 1."""

    def oid(self, number: int) -> int:
        """The parameter's type; UNKNOWN until a use determines it."""
        self.numbers.add(number)
        declared = self._declared[number - 1] if number <= len(self._declared) else 0
        if declared not in (0, types.UNKNOWN):
            return declared
        return self.determined.get(number, types.UNKNOWN)

    def declare(self, number: int, oid: int) -> int:
        """Set a parameter's type if it is undetermined. Returns the type that the parameter has then."""
        if self.oid(number) == types.UNKNOWN:
            self.determined[number] = oid
        return self.oid(number)

    def all(self) -> tuple[int, ...]:
        """The types of all parameters up to the largest number; text if no use determines one.

        Raises:
            SqlError: 42P18 for a number that the statement does not use and whose type the client has not declared.
        """
        count = max(max(self.numbers, default=0), len(self._declared) if self.numbers else 0)
        oids = []
        for number in range(1, count + 1):
            oid = self._declared[number - 1] if number <= len(self._declared) else 0
            if number not in self.numbers and oid in (0, types.UNKNOWN):
                raise SqlError("42P18", f"could not determine data type of parameter ${number}", hint="Use every number from $1 on.")
            oid = oid if oid not in (0, types.UNKNOWN) else self.determined.get(number, types.TEXT)
            oids.append(oid)
        return tuple(oids)
