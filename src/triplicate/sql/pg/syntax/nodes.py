"""The tree of a statement: expressions and queries, each with its range of the text. Pure.

`start` and `end` are positions in the text, in characters. Brackets around an expression belong to its parent. `children` returns the parts
in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class SyntaxNode:
    start: int
    end: int

    def children(self) -> Iterator[SyntaxNode]:
        return iter(())


@dataclass(slots=True, eq=False)
class Name(SyntaxNode):
    """A name of one or more parts. A part that was not quoted is in lower case."""

    parts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...] = ()
    quoted: bool = False
    """The last part was quoted."""

    @property
    def last(self) -> str:
        return self.parts[-1]


@dataclass(slots=True, eq=False)
class TypeName(SyntaxNode):
    """A type in a cast: ``numeric(10, 2)``, ``double precision``, ``int[]``."""

    name: str
    """In lower case, with one blank between words, without a schema."""
    modifiers: tuple[int, ...] = ()
    dimensions: int = 0


# Expressions.


@dataclass(slots=True, eq=False)
class Expression(SyntaxNode):
    oid: int | None = field(default=None, init=False)
    """The type, set by analysis; None where it is undetermined."""
    as_oid: int | None = field(default=None, init=False)
    """The type to which its context converts it; None if it stays."""
    as_modifiers: tuple[int, ...] = field(default=(), init=False)
    """(length,) or (precision, scale) of that type."""
    is_stored: bool = field(default=False, init=False)
    """It is assigned to a column."""
    is_ordered: bool = field(default=False, init=False)
    """ORDER BY names this item of a select list."""
    is_checked: bool = field(default=False, init=False)
    """It is integer arithmetic that is checked for overflow."""
    is_trimmed: bool = field(default=False, init=False)
    """It is assigned to a char(n), without the blanks at its end."""
    enclosed: bool = field(default=False, init=False)
    """The expression has its own brackets."""


@dataclass(slots=True, eq=False)
class Literal(Expression):
    kind: str
    """``number``, ``string``, ``blob``, ``null``, ``true``, ``false``, ``default``."""
    value: str
    """The characters of a string, or the text as written."""


@dataclass(slots=True, eq=False)
class Parameter(Expression):
    number: int
    """From 1."""


@dataclass(slots=True, eq=False)
class CurrentTime(Expression):
    """``current_timestamp``, ``now()`` and similar words, by their name in lower case."""

    name: str
    precision: int | None = None


@dataclass(slots=True, eq=False)
class ColumnRef(Expression):
    name: Name
    is_computed: bool = field(default=False, init=False)
    """It refers to an expression or to a column of a query, not to a column of a table."""
    scale: int | None = field(default=None, init=False)
    """The scale of a numeric column that declares its precision."""
    session_name: str = field(default="", init=False)
    """It is not a column but this keyword: ``current_user`` or a similar one. Empty for a column."""
    relation: object = field(default=None, init=False)
    """The relation in FROM, set by analysis; None where it is undetermined."""
    qualifier: str = field(default="", init=False)
    """The qualifier that the rendered text has before a bare name."""


@dataclass(slots=True, eq=False)
class Star(Expression):
    """``*`` or ``t.*``."""

    qualifier: Name | None
    columns: tuple[ColumnRef, ...] | None = field(default=None, init=False)
    """The columns that it stands for; None if they are unknown."""
    expansion: tuple[str, ...] | None = field(default=None, init=False)
    """The items of the select list for SQLite, if its columns differ or are fixed here; None if not."""


@dataclass(slots=True, eq=False)
class Unary(Expression):
    operator: str
    operand: Expression

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand


@dataclass(slots=True, eq=False)
class Binary(Expression):
    operator: str
    left: Expression
    right: Expression
    at: tuple[int, int]
    """Start and end of the operator in the text."""

    def children(self) -> Iterator[SyntaxNode]:
        yield self.left
        yield self.right


@dataclass(slots=True, eq=False)
class Logical(Expression):
    """AND or OR of two or more operands."""

    operator: str
    operands: list[Expression]

    def children(self) -> Iterator[SyntaxNode]:
        return iter(self.operands)


@dataclass(slots=True, eq=False)
class IsTest(Expression):
    """``IS NULL``, ``IS NOT TRUE``, ``ISNULL``; with `other` it is ``IS [NOT] DISTINCT FROM``, or SQLite's ``IS [NOT] other``."""

    operand: Expression
    test: str
    """``NULL``, ``TRUE``, ``FALSE``, ``UNKNOWN``, ``DISTINCT``, or ``SAME`` for SQLite's own."""
    negated: bool
    other: Expression | None = None

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand
        if self.other is not None:
            yield self.other


@dataclass(slots=True, eq=False)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    symmetric: bool

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand
        yield self.low
        yield self.high


@dataclass(slots=True, eq=False)
class Like(Expression):
    operand: Expression
    pattern: Expression
    kind: str
    """``LIKE``, ``ILIKE``, ``SIMILAR``, or SQLite's ``GLOB``, ``REGEXP``, ``MATCH``."""
    negated: bool
    escape: Expression | None = None

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand
        yield self.pattern
        if self.escape is not None:
            yield self.escape


@dataclass(slots=True, eq=False)
class In(Expression):
    operand: Expression
    items: list[Expression]
    query: QueryExpression | None
    negated: bool
    table: Name | None = None
    """SQLite's ``x IN table``."""

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand
        yield from self.items
        if self.query is not None:
            yield self.query


@dataclass(slots=True, eq=False)
class Quantified(Expression):
    """``left operator ANY (right)``: either `right`, an array, or `query` is set."""

    left: Expression
    operator: str
    quantifier: str
    right: Expression | None
    query: QueryExpression | None

    def children(self) -> Iterator[SyntaxNode]:
        yield self.left
        if self.right is not None:
            yield self.right
        if self.query is not None:
            yield self.query


@dataclass(slots=True, eq=False)
class Exists(Expression):
    query: QueryExpression

    def children(self) -> Iterator[SyntaxNode]:
        yield self.query


@dataclass(slots=True, eq=False)
class Subquery(Expression):
    query: QueryExpression
    width: int | None = field(default=None, init=False)
    """Number of columns of the query; None if it is unknown."""

    def children(self) -> Iterator[SyntaxNode]:
        yield self.query


@dataclass(slots=True, eq=False)
class Case(Expression):
    operand: Expression | None
    branches: list[tuple[Expression, Expression]]
    otherwise: Expression | None

    def children(self) -> Iterator[SyntaxNode]:
        if self.operand is not None:
            yield self.operand
        for condition, result in self.branches:
            yield condition
            yield result
        if self.otherwise is not None:
            yield self.otherwise


@dataclass(slots=True, eq=False)
class Cast(Expression):
    operand: Expression
    type: TypeName
    form: str
    """``::``, ``CAST``, or ``typed`` for ``date '…'``."""

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand


@dataclass(slots=True, eq=False)
class Collate(Expression):
    operand: Expression
    collation: Name

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand


@dataclass(slots=True, eq=False)
class AtTimeZone(Expression):
    operand: Expression
    zone: Expression

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand
        yield self.zone


@dataclass(slots=True, eq=False)
class RowConstructor(Expression):
    items: list[Expression]
    is_explicit: bool = False
    """Written with the word ROW."""

    def children(self) -> Iterator[SyntaxNode]:
        return iter(self.items)


@dataclass(slots=True, eq=False)
class ArrayConstructor(Expression):
    items: list[Expression]
    query: QueryExpression | None

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.items
        if self.query is not None:
            yield self.query


@dataclass(slots=True, eq=False)
class Subscript(Expression):
    operand: Expression
    index: Expression

    def children(self) -> Iterator[SyntaxNode]:
        yield self.operand
        yield self.index


@dataclass(slots=True, eq=False)
class WindowDefinition(SyntaxNode):
    partition: list[Expression]
    order: list[Sort]

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.partition
        yield from self.order


@dataclass(slots=True, eq=False)
class Call(Expression):
    name: Name
    arguments: list[Expression]
    words: tuple[str, ...] = ()
    """The words between the arguments of a call in the standard's own form: ``substring(a FROM b FOR c)`` has FROM and FOR."""
    is_distinct: bool = False
    is_star: bool = False
    order: list[Sort] = field(default_factory=list)
    filter: Expression | None = None
    within: list[Sort] = field(default_factory=list)
    window: WindowDefinition | None = None
    is_window: bool = False
    arguments_end: int = 0
    """Position of the closing bracket of the arguments."""

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.arguments
        yield from self.order
        yield from self.within
        if self.filter is not None:
            yield self.filter
        if self.window is not None:
            yield self.window


# Queries.


@dataclass(slots=True, eq=False)
class Sort(SyntaxNode):
    expression: Expression
    descending: bool
    nulls: str
    """``FIRST``, ``LAST`` or empty."""
    by: Expression | None = field(default=None, init=False)
    """The item of the select list that a name or a number refers to."""
    is_result: bool = field(default=False, init=False)
    """It refers to a column of the result and is sorted without a conversion."""
    column_number: int = field(default=0, init=False)
    """The number of that column from 1, if only the number identifies it, else 0."""

    def children(self) -> Iterator[SyntaxNode]:
        yield self.expression


@dataclass(slots=True, eq=False)
class SelectItem(SyntaxNode):
    """One item of a select list or a RETURNING list."""

    expression: Expression
    alias: Name | None
    keeps_name: bool = field(default=False, init=False)
    """For SQLite it has an alias, by which the queries around it know it."""
    is_shadow: bool = field(default=False, init=False)
    """Without an alias it has the name of a column of a query around, which SQLite would not find behind an alias."""

    def children(self) -> Iterator[SyntaxNode]:
        yield self.expression


@dataclass(slots=True, eq=False)
class FromItem(SyntaxNode):
    """An item of FROM. Exactly one of `table`, `query`, `call` and `joined` (two or more items) is set."""

    table: Name | None = None
    query: QueryExpression | None = None
    call: Call | None = None
    joined: Sequence[FromItem] = ()
    conditions: Sequence[Expression] = ()
    alias: Name | None = None
    columns: tuple[Name, ...] = ()
    has_ordinality: bool = False
    kinds: tuple[str, ...] = ()
    """For each join: ``,``, ``LEFT``, ``RIGHT``, ``FULL``, or empty for an inner join; in capitals. Only commas may be more than one."""
    using: tuple[Name, ...] = ()
    is_natural: bool = False
    is_lateral: bool = False
    needs_brackets: bool = False
    """The right side of a join that is a join itself, written without the brackets that SQLite requires."""
    in_schema: bool = field(default=False, init=False)
    """A table whose name SQLite would resolve to a common table expression that is not in scope in PostgreSQL."""
    expansion: tuple[str, ...] | None = field(default=None, init=False)
    """For SQLite: the columns of a join with an alias, as items of a select list (None for ``*``), or the names of a query's columns."""

    def children(self) -> Iterator[SyntaxNode]:
        if self.query is not None:
            yield self.query
        if self.call is not None:
            yield self.call
        yield from sorted((*self.joined, *self.conditions), key=lambda node: node.start)


@dataclass(slots=True, eq=False)
class Select(SyntaxNode):
    is_distinct: bool
    distinct_on: list[Expression]
    items: list[SelectItem]
    source: FromItem | None
    where: Expression | None
    group: list[Expression]
    having: Expression | None
    windows: list[WindowDefinition]

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.distinct_on
        yield from self.items
        if self.source is not None:
            yield self.source
        if self.where is not None:
            yield self.where
        yield from self.group
        if self.having is not None:
            yield self.having
        yield from self.windows


@dataclass(slots=True, eq=False)
class Values(SyntaxNode):
    rows: list[RowConstructor]

    def children(self) -> Iterator[SyntaxNode]:
        return iter(self.rows)


@dataclass(slots=True, eq=False)
class Compound(SyntaxNode):
    """UNION, EXCEPT or INTERSECT. `operator` is in capitals, with ALL if the text has it."""

    left: Body
    right: Body
    operator: str

    def children(self) -> Iterator[SyntaxNode]:
        yield self.left
        yield self.right


@dataclass(slots=True, eq=False)
class StatementNode(SyntaxNode):
    """A query, or one of the statements in `dml_nodes`, with its common table expressions."""

    common: list[With]


@dataclass(slots=True, eq=False)
class With(SyntaxNode):
    """One common table expression."""

    name: Name
    columns: tuple[Name, ...]
    body: StatementNode
    materialized: tuple[int, int] | None = None
    is_recursive: bool = False
    names_left: tuple[str, ...] = field(default=(), init=False)
    """Names of the columns after those in `columns`, because SQLite requires all or none."""

    def children(self) -> Iterator[SyntaxNode]:
        yield self.body


@dataclass(slots=True, eq=False)
class LimitClause(SyntaxNode):
    """LIMIT, OFFSET and FETCH of one query, in any of their forms."""

    limit: Expression | None
    offset: Expression | None
    is_plain: bool
    """Written as SQLite reads it: ``LIMIT a``, ``LIMIT a OFFSET b`` or ``LIMIT b, a``."""

    def children(self) -> Iterator[SyntaxNode]:
        yield from sorted((part for part in (self.limit, self.offset) if part is not None), key=lambda node: node.start)


@dataclass(slots=True, eq=False)
class QueryExpression(StatementNode):
    body: Body
    order: list[Sort]
    limits: LimitClause | None
    locking: tuple[int, int] | None
    """Start and end of FOR UPDATE, FOR SHARE, … in the text."""
    lock: str = ""
    """The words of the locking clause, in capitals."""
    is_fenced: bool = field(default=False, init=False)
    """Whether its rows must be computed before the query around it is, since a call in them has another result each time."""

    def children(self) -> Iterator[SyntaxNode]:
        yield from self.common
        yield self.body
        yield from self.order
        if self.limits is not None:
            yield self.limits


Body = Select | Values | Compound | QueryExpression
