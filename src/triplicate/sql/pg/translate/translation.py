"""Translates one statement of a client for SQLite, and determines the types for the client. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import ComposedText, Statement, Token, adjacent, nested_comments, quote_string
from triplicate.sql.core.schema_cache import LONG_TEXT
from triplicate.sql.core.session_roles import SessionName
from triplicate.sql.pg.analysis.analyzer import Analyzer
from triplicate.sql.pg.analysis.name_scope import Outputs, Parameters
from triplicate.sql.pg.analysis.overflow import mark_arithmetic
from triplicate.sql.pg.analysis.view_types import view_types
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.dml_nodes import DmlStatement
from triplicate.sql.pg.syntax.missing_constructs import MISSING, refuse_missing
from triplicate.sql.pg.syntax.statement_parser import parse
from triplicate.sql.pg.translate.render_queries import StatementRenderer, is_volatile
from triplicate.sql.pg.translate.target_context import TargetContext
from triplicate.sql.pg.values import types

ColumnsByTable = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""Each table's name with its columns: name and declared type."""
KeysByTable = tuple[tuple[str, tuple[str, ...]], ...]
"""Each table's name with the columns of its primary key."""
_REMEMBERED = 2000
_PARAMETERS_MAX = 32_766
"""SQLite's limit."""


_SESSION_NAMES = {"user": SessionName.CURRENT, "session_user": SessionName.SESSION}


@dataclass(frozen=True, slots=True)
class SuppliedParameter:
    """A parameter that the session supplies: the time of the transaction or of the statement or, if `oid` is text, the user's name."""

    number: int
    of_statement: bool
    oid: int
    precision: int | None
    user: SessionName = SessionName.CURRENT
    """The name that is supplied."""
    live: int | None = None
    """The index of the live table whose rows are supplied instead; see `triplicate.sql.catalogue.live_tables`."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The text for SQLite, and the types and names for the client."""

    sql: str
    parameter_oids: tuple[int, ...] = ()
    """Types of the client's parameters, in the order of their numbers."""
    supplied: tuple[SuppliedParameter, ...] = ()
    outputs: tuple[tuple[str, int | None], ...] | None = None
    """(name, type) of the result's columns; None if they are unknown."""
    scales: tuple[int | None, ...] = ()
    """Scale of each column of the result; None for one that is not numeric or whose expression does not determine it."""
    lock: str = ""
    """``FOR UPDATE``, ``FOR SHARE``, …, or empty."""
    pieces: ComposedText | None = None
    is_understood: bool = False
    """Whether the statement was parsed by PostgreSQL's grammar; otherwise SQLite gets it as it is written."""
    view_types: tuple[str, ...] = ()
    """Types of the columns of a view, see `triplicate.sql.core.view_columns`."""
    is_united: bool = False
    """Whether it contains UNION, INTERSECT or EXCEPT. SQLite reports only the column types of their first part."""

    def origin(self, position: int) -> int:
        """The position in the client's text of the character at `position` in the translated text. Both are from 1."""
        return position if self.pieces is None else self.pieces.origin(position - 1) + 1


class _ParsedTrees:
    """Trees that `named_tables` has parsed, for the translation that follows. The analysis changes a tree, so each is used once."""

    _CAPACITY = 64

    def __init__(self) -> None:
        self._trees: dict[Statement, DmlStatement] = {}

    def keep(self, statement: Statement, tree: DmlStatement) -> bool:
        """Keep the tree of a statement; False if its text is long."""
        if len(statement.sql) > LONG_TEXT:
            return False
        if len(self._trees) >= self._CAPACITY:
            self._trees.clear()
        self._trees[statement] = tree
        return True

    def remove(self, statement: Statement) -> DmlStatement | None:
        return self._trees.pop(statement, None)


_parsed_trees = _ParsedTrees()


def named_tables(statement: Statement) -> tuple[str, ...]:
    """Names of the tables that the statement may read or change, as written, without a schema; empty if the grammar does not cover it."""
    return parse_tables(statement)[0]


def parse_tables(statement: Statement) -> tuple[tuple[str, ...], DmlStatement | None]:
    """The names as `named_tables` has them, and the tree of a long statement, for one translation. Those of others are kept here."""
    tree = parse(statement.tokens[_prefix(statement.tokens) :], len(statement.sql))
    if tree is None:
        return (), None
    is_kept = _parsed_trees.keep(statement, tree)
    names: dict[str, None] = {}
    pending: list[nodes.SyntaxNode] = [tree]
    while pending:
        node = pending.pop()
        table = getattr(node, "table", None)
        if isinstance(table, nodes.Name):
            names[table.last] = None
        pending.extend(node.children())
    return tuple(names), None if is_kept else tree


def common_names(statement: Statement) -> set[str]:
    """Names of the common table expressions anywhere in a statement."""
    pending: list[nodes.SyntaxNode | None] = [parse(statement.tokens[_prefix(statement.tokens) :], len(statement.sql))]
    names: set[str] = set()
    while pending:
        node = pending.pop()
        if isinstance(node, nodes.With):
            names.add(node.name.last)
        pending.extend(node.children() if node is not None else ())
    return names


def translate(
    statement: Statement,
    tables: ColumnsByTable = (),
    given_oids: Sequence[int] = (),
    keys: KeysByTable | None = None,
    context: TargetContext = TargetContext.STATEMENT,
    tree: DmlStatement | None = None,
    outer: Sequence[tuple[str, str]] = (),
) -> Translation:
    """Translate a statement for SQLite.

    Args:
        tables: the columns of those of `named_tables` that exist.
        given_oids: the parameters' types that the client declares; 0 for an undeclared one.
        keys: the primary keys of the tables; None if ungrouped columns are not checked.
        context: the use of the text.
        tree: of a long statement, from `parse_tables`. It is changed.
        outer: (name, table) of the rows ``new`` and ``old`` of a trigger.

    Raises:
        SqlError: an error that PostgreSQL also reports, or an unsupported feature; see docs/sql.md.
    """
    if len(statement.sql) <= LONG_TEXT:
        return _translate(statement, tables, tuple(given_oids), keys, context, outer=tuple(outer))
    return _translate.__wrapped__(statement, tables, tuple(given_oids), keys, context, tree, tuple(outer))


@lru_cache(maxsize=_REMEMBERED)
def _translate(
    text: Statement,
    tables: ColumnsByTable,
    given_oids: tuple[int, ...],
    keys: KeysByTable | None,
    context: TargetContext,
    tree: DmlStatement | None = None,
    outer: tuple[tuple[str, str], ...] = (),
) -> Translation:
    sql, tokens = text.sql, text.tokens
    for start, end in nested_comments(sql, tokens):
        sql = sql[:start] + " " * (end - start) + sql[end:]
    if MISSING.search(sql) is not None:
        refuse_missing(tokens)
    _check_tokens(tokens)
    begin = _prefix(tokens)
    statement = tree or _parsed_trees.remove(text) or parse(tokens[begin:], len(sql))
    if statement is None:
        return _as_written(sql, tokens, given_oids)
    parameters = Parameters(given_oids)
    is_view = context is TargetContext.VIEW
    analysis = Analyzer(dict(tables), parameters, None if keys is None else dict(keys), fixes_stars=is_view)
    outputs = analysis.statement(statement, analysis.rows_of_trigger(outer) if outer else None)
    if context.calls_ours:
        mark_arithmetic(statement, leaves=not is_view)
    oids = parameters.all()
    _check_count(len(oids))
    if is_view and isinstance(statement, nodes.QueryExpression):
        statement.is_fenced = is_volatile(statement)
    renderer = StatementRenderer(sql, len(oids) + 1, context)
    renderer.pieces.copy(0, statement.start)
    renderer.write(statement)
    supplied = tuple(
        SuppliedParameter(number, which == "statement", oid, precision, _SESSION_NAMES.get(which, SessionName.CURRENT))
        for (which, oid, precision), number in renderer.supplied.items()
    )
    columns, pieces = None if begin else _columns(outputs), renderer.pieces
    scales = analysis.scales(statement, len(columns)) if columns is not None else ()
    kept = view_types(statement, outputs) if is_view and outputs and isinstance(statement, nodes.QueryExpression) else ()
    return Translation(pieces.text(), oids, supplied, columns, scales, renderer.lock, pieces, True, kept, _is_united(statement))


def _is_united(statement: nodes.SyntaxNode) -> bool:
    pending = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, nodes.Compound):
            return True
        pending.extend(node.children())
    return False


def _columns(outputs: Outputs | None) -> tuple[tuple[str, int | None], ...] | None:
    if outputs is None:
        return None
    return tuple((name, types.TEXT if oid == types.UNKNOWN else oid) for name, oid in outputs)


def _prefix(tokens: Sequence[Token]) -> int:
    """The number of tokens of EXPLAIN or EXPLAIN QUERY PLAN at the beginning."""
    if not tokens or tokens[0].upper != "EXPLAIN":
        return 0
    words = [token.upper for token in tokens[:3]]
    return 3 if words == ["EXPLAIN", "QUERY", "PLAN"] else 1


def _check_tokens(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.kind == "quoted" and token.text[0] == '"' and token.text.count('"') % 2:
            raise SqlError("42601", f"unterminated quoted identifier at or near {token.text[:20]}", position=token.start + 1)
        if token.kind == "parameter" and not (token.text[1:].isascii() and (token.text[1:].isdigit() or token.text == "?")):
            raise SqlError(
                "42601",
                f'syntax error at or near "{token.text}"',
                hint="Parameters are numbered: $1, $2, ….",
                position=token.start + 1,
            )
        if token.kind == "parameter" and len(token.text) > 1 and not 1 <= int(token.text[1:7]) <= _PARAMETERS_MAX:
            raise SqlError("42P02", f"there is no parameter {token.text[:12]}", position=token.start + 1)
    if adjacent(tokens):
        raise SqlError("42601", "two string constants stand side by side", hint="Join them with ||.")


def _check_count(count: int) -> None:
    if count > _PARAMETERS_MAX:
        raise SqlError("54000", f"a statement may have {_PARAMETERS_MAX} parameters, this one has {count}")


def _as_written(sql: str, tokens: Sequence[Token], given_oids: tuple[int, ...]) -> Translation:
    """Prepare a statement that the grammar does not cover. Parameters keep their numbers, and strings their values.

    Raises:
        SqlError: 0A000 for a cast, which SQLite would parse as a part of a name.
    """
    parameters = Parameters(given_oids)
    pieces = ComposedText(sql)
    at = largest = 0
    is_change = not tokens or tokens[0].upper not in ("CREATE", "ALTER", "DROP")
    for token in tokens:
        if token.kind == "parameter":
            number = int(token.text[1:]) if len(token.text) > 1 else largest + 1
            largest = max(largest, number)
            parameters.oid(number)
            pieces.copy(at, token.start)
            pieces.add(f"?{number}", token.start)
            at = token.end
        elif token.upper == "::" and is_change:
            raise SqlError(
                "0A000",
                "the cast :: is not available in a statement that is not in PostgreSQL's syntax",
                hint="Write CAST(value AS type), or the statement in PostgreSQL's syntax.",
                position=token.start + 1,
            )
        elif not token.is_plain:
            pieces.copy(at, token.start)
            pieces.add(quote_string(token.string()), token.start)
            at = token.end
    pieces.copy(at, len(sql))
    return Translation(pieces.text(), parameters.all(), pieces=pieces)
