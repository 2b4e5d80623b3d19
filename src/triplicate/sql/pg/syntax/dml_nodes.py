"""The nodes of INSERT, UPDATE and DELETE, beside those of queries and expressions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from triplicate.sql.pg.syntax.nodes import Expression, FromItem, Name, QueryExpression, SelectItem, Sort, StatementNode, SyntaxNode


@dataclass(slots=True, eq=False)
class Assignment(SyntaxNode):
    """``column = value`` or ``(a, b) = row`` in SET."""

    columns: tuple[Name, ...]
    value: Expression

    def children(self) -> Iterator[SyntaxNode]:
        yield self.value


@dataclass(slots=True, eq=False)
class Conflict(SyntaxNode):
    """ON CONFLICT. `target` has its expressions, `constraint` the name after ON CONSTRAINT. DO NOTHING has no assignments."""

    target: list[Sort]
    target_where: Expression | None
    constraint: Name | None
    assignments: list[Assignment]
    where: Expression | None

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.target
        if self.target_where is not None:
            yield self.target_where
        yield from self.assignments
        if self.where is not None:
            yield self.where


@dataclass(slots=True, eq=False)
class InsertStatement(StatementNode):
    table: Name
    alias: Name | None
    columns: tuple[Name, ...]
    query: QueryExpression | None
    """None for DEFAULT VALUES."""
    conflicts: list[Conflict]
    returning: list[SelectItem]
    overriding: tuple[int, int] | None = None
    """Start and end of OVERRIDING … VALUE in the text."""
    first_columns: tuple[str, ...] = field(default=(), init=False)
    """The columns that get values, if the statement names none and omits the last ones."""

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.common
        if self.query is not None:
            yield self.query
        yield from self.conflicts
        yield from self.returning


@dataclass(slots=True, eq=False)
class UpdateStatement(StatementNode):
    table: Name
    alias: Name | None
    assignments: list[Assignment]
    source: FromItem | None
    where: Expression | None
    returning: list[SelectItem]

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.common
        yield from self.assignments
        if self.source is not None:
            yield self.source
        if self.where is not None:
            yield self.where
        yield from self.returning


@dataclass(slots=True, eq=False)
class DeleteStatement(StatementNode):
    table: Name
    alias: Name | None
    using: FromItem | None
    where: Expression | None
    returning: list[SelectItem]

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.common
        if self.using is not None:
            yield self.using
        if self.where is not None:
            yield self.where
        yield from self.returning


DmlStatement = QueryExpression | InsertStatement | UpdateStatement | DeleteStatement
