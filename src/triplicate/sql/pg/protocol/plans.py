"""Plans of statements: a client's text is classified, and translated for the session's schema. Plans are cached by text."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Prepared, Result, Session, StatementKind, TransactionStatus
from triplicate.sql.core.lexer import Statement, quote, split_statements, statement_of
from triplicate.sql.core.schema_cache import LONG_TEXT, MAX_STATEMENT_BYTES
from triplicate.sql.core.session_counters import may_count
from triplicate.sql.pg.ddl.spans import spans_of
from triplicate.sql.pg.protocol.commands import ClientCommand, EngineStatement, classify
from triplicate.sql.pg.protocol.row_encoder import ResultForm, make_result_form
from triplicate.sql.pg.rewrite.catalogue_queries import CatalogueQuery, catalogue_query
from triplicate.sql.pg.rewrite.catalogue_types import column_oid, is_catalogue_table
from triplicate.sql.pg.rewrite.create_table_as import CreateTableAs, column_type, table_query
from triplicate.sql.pg.rewrite.create_trigger import CreateTrigger, trigger_parts
from triplicate.sql.pg.rewrite.create_view import view_query
from triplicate.sql.pg.rewrite.live_uses import LiveUse
from triplicate.sql.pg.rewrite.reserved_words import constraints_last, quote_reserved
from triplicate.sql.pg.rewrite.session_calls import SessionCalls
from triplicate.sql.pg.rewrite.setval import number_above_maximum
from triplicate.sql.pg.rewrite.unnest import unnest_as_values
from triplicate.sql.pg.syntax.as_of_clause import AsOfClause, AsOfQuery, parse_as_of
from triplicate.sql.pg.syntax.dml_nodes import DmlStatement
from triplicate.sql.pg.syntax.explain_statement import ExplainStatement
from triplicate.sql.pg.syntax.notify_statements import NotifyCall
from triplicate.sql.pg.syntax.statistics_reset import ResetStatistics
from triplicate.sql.pg.translate.target_context import TargetContext
from triplicate.sql.pg.translate.translation import (
    ColumnsByTable,
    KeysByTable,
    SuppliedParameter,
    Translation,
    common_names,
    named_tables,
    parse_tables,
    translate,
)
from triplicate.sql.pg.values import types

CACHED_STATEMENTS = 2000
"""Capacity of each cache, statements."""
_FORMS_MAX = 16
"""Forms of results that a plan keeps. A client library uses one or two of them."""
_LOOP_TEXT = 4 * 1024
"""A statement with more characters is parsed and translated by a thread. One just below the limit takes some 15 ms."""
_AFTER_TABLES = ("42702", "42703", "42725", "42803", "42804", "42846", "42883", "42P18")
"""SQLSTATEs, besides those of values, that PostgreSQL reports only where all tables exist."""
_GROUPS = re.compile(r"\bgroup\s+by\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """The engine's form of a statement, and the description of its parameters and columns for the client."""

    command: ClientCommand
    prepared: Prepared | None
    """None for a session command (SET, SHOW, …) and for an empty statement."""
    parameter_oids: tuple[int, ...] = ()
    column_oids: tuple[int, ...] = ()
    """Types of the columns. A column of unknown type is text: the value in one row says nothing about those in others."""
    names: tuple[str, ...] = ()
    """The columns' names for the client; empty if they have the engine's names."""
    supplied: tuple[SuppliedParameter, ...] = ()
    """Parameters of the engine's statement after the client's, which the session supplies."""
    typmods: tuple[int, ...] = ()
    """PostgreSQL's type modifiers of the columns, for RowDescription."""
    shown_typmods: tuple[int, ...] = ()
    """As `typmods`, with those of expressions whose scale is known. They determine the text of numerics, and are not sent."""
    lock: str = ""
    """``FOR UPDATE``, ``FOR SHARE``, … or empty. In a transaction, such a statement needs the writer."""
    parameter_indexes: tuple[int, ...] | None = None
    """For each parameter of the engine's statement its index among the client's and the supplied ones; None for the same order."""
    live: tuple[LiveUse, ...] = ()
    """The live tables that the statement reads."""
    unexamined: Translation | None = None
    """The translation of a change that SQLite has not checked yet, because it runs next; else None."""
    _forms: dict[tuple[int, ...], ResultForm] = field(default_factory=dict, init=False, compare=False, repr=False)

    def result_form(self, result_formats: tuple[int, ...]) -> ResultForm:
        """The form of the results in the formats of a Bind; see `make_result_form`."""
        form = self._forms.get(result_formats)
        if form is None:
            form = make_result_form(self.column_oids, result_formats, self.shown_typmods)
            if len(self._forms) < _FORMS_MAX:
                self._forms[result_formats] = form
        return form


class PlanCache:
    """Plans for the present schema of a database, by text and parameter types.

    A plan of another schema version may refer to other tables, columns and types, so a new version empties the cache.
    """

    def __init__(self, limit: int = CACHED_STATEMENTS) -> None:
        self._limit = limit
        self._version = -1
        self._plans: OrderedDict[tuple[str, tuple[int, ...]], StatementPlan] = OrderedDict()

    def __len__(self) -> int:
        return len(self._plans)

    def get(self, version: int, sql: str, given_oids: tuple[int, ...]) -> StatementPlan | None:
        """The plan for this version of the schema, or None."""
        if version != self._version:
            self._plans.clear()
            self._version = version
            return None
        plan = self._plans.get((sql, given_oids))
        if plan is not None:
            self._plans.move_to_end((sql, given_oids))
        return plan

    def add(self, version: int, sql: str, given_oids: tuple[int, ...], plan: StatementPlan) -> None:
        """Add a plan, unless the schema has changed since planning began, or the text is long."""
        if version != self._version or len(sql) > LONG_TEXT:
            return
        self._plans[sql, given_oids] = plan
        if len(self._plans) > self._limit:
            self._plans.popitem(last=False)


async def split_query(session: Session, sql: str) -> tuple[Statement, ...]:
    """The statements in a client's text. A long one is not split on the event loop.

    Raises:
        SqlError: 54000, a statement is too long. The steps that follow would go through all of it before SQLite's interface refuses it.
    """
    statements = await aside_if_long(session, sql, _split if len(sql) <= LONG_TEXT else _split.__wrapped__, sql)
    longest = max((len(statement.sql) for statement in statements), default=0)
    if longest > MAX_STATEMENT_BYTES:
        raise SqlError("54000", f"a statement may have {MAX_STATEMENT_BYTES} characters, this one has {longest}")
    return statements


@lru_cache(maxsize=CACHED_STATEMENTS)
def _split(sql: str) -> tuple[Statement, ...]:
    return tuple(split_statements(sql))


async def plan_statement(
    session: Session,
    statement: Statement,
    given_oids: tuple[int, ...],
    cache: PlanCache,
    schema_version: tuple[int, int],
    *,
    runs_at_once: bool = False,
) -> StatementPlan:
    """Check one statement and determine the types of its parameters and columns.

    Args:
        schema_version: the session's, read before the call. A change of the schema in the meantime makes the plan outdated.
        given_oids: the parameters' types in Parse. Types that are 0 or missing are determined by the use of the parameter.
        cache: of the session's database.
        runs_at_once: whether the caller runs the statement next, on a node that may write. A change of constants is then not examined
            first, which saves a hop to a thread. SQLite reports its errors when it runs.

    Raises:
        SqlError: errors of the translation, of the session's checks and of SQLite.
    """
    if not session.sees_shared_schema:
        return await _plan(session, statement, given_oids)
    plan = cached_plan(session, statement, given_oids, cache, schema_version)
    if plan is None:
        plan = await _plan(session, statement, given_oids, runs_at_once=runs_at_once)
        if plan.unexamined is None:
            cache.add(schema_version[0], statement.sql, given_oids, plan)
    return plan


def cached_plan(
    session: Session, statement: Statement, given_oids: tuple[int, ...], cache: PlanCache, schema_version: tuple[int, int]
) -> StatementPlan | None:
    """The plan of a statement that was planned before for the schema that the session sees; None if there is none.

    Raises:
        SqlError: as `Session.check_prepared`.
    """
    if not session.sees_shared_schema:
        return None
    plan = cache.get(schema_version[0], statement.sql, given_oids)
    if plan is not None and plan.prepared is not None:
        session.check_prepared(plan.prepared)
    return plan


async def _plan(session: Session, statement: Statement, given_oids: tuple[int, ...], *, runs_at_once: bool = False) -> StatementPlan:
    parsed = await aside_if_long(session, statement.sql, parse_statement, statement)
    command = parsed.command
    if isinstance(command, SessionCalls | NotifyCall | ResetStatistics):
        return session_calls_plan(command, given_oids)
    if isinstance(command, AsOfQuery):
        return await _plan_past_query(session, command, given_oids)
    if isinstance(command, ExplainStatement):
        if isinstance(parse_statement(command.statement).command, AsOfQuery):
            raise SqlError("0A000", "AS OF is not available in EXPLAIN", hint="SET triplicate.as_of, and explain the query without it.")
        explained = await _plan(session, command.statement, given_oids)
        return StatementPlan(command, None, explained.parameter_oids, (types.JSON if command.is_json else types.TEXT,))
    if not isinstance(command, EngineStatement):
        return StatementPlan(command, None)
    if parsed.catalogue_query is not None:
        return await _plan_catalogue_query(session, command, parsed.catalogue_query, given_oids)
    if session.status is TransactionStatus.FAILED:
        return StatementPlan(command, await session.prepare(command.text))
    if command.statement.first_word == "CREATE":
        table_as = table_query(command.statement)
        plan = await _plan_create_table_as(session, command, table_as, given_oids) if table_as is not None else None
        if plan is not None:
            return plan
    command = await _with_translated_queries(session, command)
    command = await _with_translated_expressions(session, command)
    tables = await _columns_by_table(session, parsed.tables)
    keys = await _keys_by_table(session, command.text, tables)
    whole, tree = TargetContext.STATEMENT, parsed.tree if command is parsed.command else None
    try:
        translation = await aside_if_long(session, statement.sql, translate, command.statement, tables, given_oids, keys, whole, tree)
    except SqlError as error:
        if error.sqlstate[:2] == "22" or error.sqlstate in _AFTER_TABLES:
            await _require_tables(session, command.statement, {*parsed.tables} - {name for name, _ in tables})
        raise
    if runs_at_once and len(tables) == len(parsed.tables) and _is_constant_change(command.statement, translation):
        tag = command.statement.first_word
        return StatementPlan(
            command, Prepared(translation.sql, StatementKind.WRITE, (), (), tag, counts=may_count(translation.sql)), unexamined=translation
        )
    try:
        prepared = await session.prepare(translation.sql)
    except SqlError as error:
        if error.position is not None:
            error.position = translation.origin(error.position)
        raise
    if prepared.kind is StatementKind.EMPTY:
        return StatementPlan(command, None)
    return _translated(command, prepared, translation)


async def _require_tables(session: Session, statement: Statement, names: set[str]) -> None:
    """Raises SqlError 42P01 for a table that does not exist. PostgreSQL looks them up before it examines expressions."""
    for name in sorted(names - await aside_if_long(session, statement.sql, common_names, statement)):
        try:
            await session.prepare(f"SELECT 1 FROM {quote(name)}")
        except SqlError as error:
            if error.sqlstate == "42P01":
                raise SqlError("42P01", error.message) from None


def _is_constant_change(statement: Statement, translation: Translation) -> bool:
    """Whether a statement is a short change with neither parameters nor a result, so that its description is known."""
    if not translation.is_understood or translation.parameter_oids or translation.supplied or len(statement.sql) > LONG_TEXT:
        return False
    return statement.first_word in ("INSERT", "UPDATE", "DELETE") and "RETURNING" not in [token.upper for token in statement.tokens]


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """The properties of a statement that follow from its text alone."""

    command: ClientCommand
    catalogue_query: CatalogueQuery | None = None
    tables: tuple[str, ...] = ()
    """The tables to which it refers; empty for a query of the catalogue."""
    tree: DmlStatement | None = None
    """Of a long statement, for one translation."""


def parse_statement(statement: Statement) -> ParsedStatement:
    """Classify a statement, after rewriting the forms of client libraries that have no direct translation.

    Raises:
        SqlError: 0A000 for an unsupported statement, 42601 for a syntax error; and as the rewriters.
    """
    return _remembered(statement) if len(statement.sql) <= LONG_TEXT else _parsed(statement)


@lru_cache(maxsize=CACHED_STATEMENTS)
def _remembered(statement: Statement) -> ParsedStatement:
    # A translation changes its tree, and this statement is translated again. The rewriters may have made it long.
    return replace(_parsed(statement), tree=None)


def _parsed(statement: Statement) -> ParsedStatement:
    as_of = parse_as_of(statement)
    if as_of is not None:
        return ParsedStatement(as_of)
    statement = unnest_as_values(constraints_last(quote_reserved(number_above_maximum(statement))))
    command = classify(statement)
    if not isinstance(command, EngineStatement):
        return ParsedStatement(command)
    query = catalogue_query(statement)
    return ParsedStatement(command, query, *(parse_tables(command.statement) if query is None else ()))


async def aside_if_long(session: Session, sql: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function of a statement's text. A long text would block the event loop for seconds, so another thread handles it."""
    if len(sql) <= _LOOP_TEXT:
        return function(*arguments)
    return await session.offload(function, *arguments)


async def _with_translated_queries(session: Session, command: EngineStatement) -> EngineStatement:
    """A CREATE VIEW or CREATE TRIGGER with its queries translated, so that they have PostgreSQL's meaning."""
    stored = view_query(command.statement) or trigger_parts(command.statement)
    if stored is None:
        return command
    names = {stored.table: None} if isinstance(stored, CreateTrigger) else {}
    for query in stored.queries:
        names.update(dict.fromkeys(await aside_if_long(session, query.sql, named_tables, query)))
    tables = await _columns_by_table(session, list(names))
    keys = await _keys_by_table(session, command.text, tables)
    text = await aside_if_long(session, command.text, stored.stored, tables, keys)
    return command if text is None else EngineStatement(statement_of(text))


async def _with_translated_expressions(session: Session, command: EngineStatement) -> EngineStatement:
    """A definition on an existing table with its expressions translated, so that they have PostgreSQL's meaning."""
    if command.statement.first_word not in ("ALTER", "CREATE"):
        return command
    spans = spans_of(command.statement)
    columns = await session.table_columns(spans.table) if spans is not None and spans.spans else None
    return command if spans is None or columns is None else EngineStatement(statement_of(spans.rewrite(command.text, columns)))


async def _plan_create_table_as(
    session: Session, command: EngineStatement, table_as: CreateTableAs, given_oids: tuple[int, ...]
) -> StatementPlan | None:
    """Plan a CREATE TABLE AS; None if the grammar does not cover its query, which SQLite then gets as it is written."""
    query = statement_of(table_as.query)
    names = await aside_if_long(session, query.sql, named_tables, query)
    tables = await _columns_by_table(session, names)
    keys = await _keys_by_table(session, query.sql, tables)
    translation = await aside_if_long(session, query.sql, translate, query, tables, given_oids, keys)
    if not translation.is_understood:
        return None
    result = await session.prepare(translation.sql)
    if result.kind is not StatementKind.READ:
        raise SqlError("42601", "CREATE TABLE AS requires a query")
    has_outputs = translation.outputs is not None and len(translation.outputs) == len(result.columns)
    outputs = (translation.outputs or ()) if has_outputs else ()
    result_columns = [
        (
            outputs[index][0] if outputs else column.name,
            column_type(column, outputs[index][1] if outputs else None, is_exact=not translation.is_united),
        )
        for index, column in enumerate(result.columns)
    ]
    columns = table_as.named(result_columns)
    head, insert = table_as.definition(columns), statement_of(table_as.insert(columns))
    tables_after = (*(table for table in tables if table[0].lower() != table_as.table.lower()), (table_as.table, tuple(columns)))
    filling = await aside_if_long(session, insert.sql, translate, insert, tables_after, given_oids, keys)
    return _translated(command, await session.prepare(head + filling.sql), filling)


async def _plan_past_query(session: Session, query: AsOfQuery, given_oids: tuple[int, ...]) -> StatementPlan:
    """The plan of a query with AS OF. One whose point is a parameter has the plan for the present until it runs."""
    if query.clause.parameter:
        try:
            return await plan_as_of(session, query, given_oids)
        except SqlError as error:
            if error.sqlstate in ("42P01", "42703") and error.hint is None:
                error.hint = "Write the point of AS OF as a constant to read tables and columns that are there no more."
            raise
    past = await session.session_as_of(query.clause.point(()))
    try:
        return await plan_as_of(past, replace(query, planned_for=past.schema_version[0]), given_oids)
    finally:
        await past.close()


async def plan_as_of(session: Session, query: AsOfQuery, given_oids: tuple[int, ...]) -> StatementPlan:
    """Plan a query with AS OF for the tables that a session reads, which is one of the past if the point is known.

    Raises:
        SqlError: 0A000, it reads no tables, or locks rows; and as `plan_statement`.
    """
    declared = with_type_of_point(query.clause, given_oids)
    plan = await _plan(session, query.statement, declared)
    if plan.prepared is None or plan.prepared.kind is not StatementKind.READ or plan.lock:
        found = f"SELECT {plan.lock}" if plan.lock else "this statement"
        raise SqlError("0A000", f"AS OF is not available in {found}", hint="It ends a query that reads tables, and locks nothing.")
    oids = (*plan.parameter_oids, *declared[len(plan.parameter_oids) :][: query.clause.parameter])
    return replace(plan, command=query, parameter_oids=oids)


def with_type_of_point(clause: AsOfClause, given_oids: Sequence[int]) -> tuple[int, ...]:
    """The types of the client's parameters, with that of the point of AS OF where the client leaves it open."""
    oids = [*given_oids, *[0] * (clause.parameter - len(given_oids))]
    if clause.parameter and not oids[clause.parameter - 1]:
        oids[clause.parameter - 1] = types.TIMESTAMPTZ if clause.kind == "time" else types.INT8
    return tuple(oids)


def _translated(command: ClientCommand, prepared: Prepared, translation: Translation) -> StatementPlan:
    columns, outputs = prepared.columns, translation.outputs
    if outputs is None or len(outputs) != len(columns):
        outputs = ()
    oids: list[int] = []
    typmods: list[int] = []
    for index, column in enumerate(columns):
        translated = outputs[index][1] if outputs else None
        declared = types.oid_of_declared(column.declared_type) if column.declared_type else None
        # For UNION, INTERSECT and EXCEPT, SQLite reports the declared types of the first part.
        oids.append(translated or declared or types.TEXT)
        typmods.append(types.typmod_of_declared(column.declared_type) if translated in (None, declared) else -1)
    scales = translation.scales if outputs and translation.scales else (None,) * len(columns)
    shown = [types.typmod_of_scale(scale) if typmod < 0 and scale else typmod for typmod, scale in zip(typmods, scales, strict=True)]
    return StatementPlan(
        command,
        prepared,
        translation.parameter_oids,
        tuple(oids),
        tuple([name for name, _ in outputs]),
        translation.supplied,
        tuple(typmods),
        tuple(shown),
        translation.lock,
        _parameter_indexes(prepared),
    )


async def _columns_by_table(session: Session, names: Sequence[str]) -> ColumnsByTable:
    existing = []
    for name in names:
        columns = await session.table_columns(name)
        if columns is not None:
            existing.append((name, tuple(columns)))
    return tuple(existing)


async def _keys_by_table(session: Session, sql: str, tables: ColumnsByTable) -> KeysByTable | None:
    """The primary keys of the tables if the statement has GROUP BY. Ungrouped columns that depend on a grouped key are allowed."""
    if await aside_if_long(session, sql, _GROUPS.search, sql) is None:
        return None
    return tuple([(name, tuple((await session.special_columns(name)).key)) for name, _ in tables])


async def _plan_catalogue_query(
    session: Session, command: EngineStatement, query: CatalogueQuery, given_oids: tuple[int, ...]
) -> StatementPlan:
    """Plan a query of the catalogue. Its rewriter determines the types that the columns do not declare."""
    for name in sorted(query.tables):
        # Earlier releases allowed such names, and SQLite finds the user's table before the catalogue's.
        found = await session.table_columns(name)
        if found is not None and not is_catalogue_table(name, [column for column, _ in found]):
            raise SqlError(
                "42939",
                f"a table or view of this database has the name of the catalogue's {name}, and hides it",
                hint=f"ALTER TABLE {name} RENAME TO another name, or drop the view.",
            )
    prepared = await session.prepare(query.text)
    oids: list[int] = []
    supplied_count = len(query.users) + len(query.live)
    for number in range(1, _parameter_count(prepared.parameters) + 1 - supplied_count):
        given_oid = given_oids[number - 1] if number <= len(given_oids) else 0
        oids.append(given_oid or query.parameters.get(number, types.TEXT))
    result_oids: Sequence[int | None] = query.columns if len(query.columns) == len(prepared.columns) else [None] * len(prepared.columns)
    columns = [column_oid(column) or oid or types.TEXT for column, oid in zip(prepared.columns, result_oids, strict=True)]
    supplied = tuple(
        SuppliedParameter(len(oids) + number, of_statement=False, oid=types.TEXT, precision=None, user=user)
        for number, user in enumerate(query.users, start=1)
    ) + tuple(
        SuppliedParameter(len(oids) + len(query.users) + index + 1, of_statement=False, oid=types.TEXT, precision=None, live=index)
        for index in range(len(query.live))
    )
    indexes = _parameter_indexes(prepared)
    names = query.names if len(query.names) == len(prepared.columns) else ()
    return StatementPlan(command, prepared, tuple(oids), tuple(columns), names, supplied, parameter_indexes=indexes, live=query.live)


def session_calls_plan(command: SessionCalls | NotifyCall | ResetStatistics, given_oids: Sequence[int]) -> StatementPlan:
    """The plan of set_config and current_setting, whose parameters and results are text, and of functions without a result."""
    declared = [oid or types.TEXT for oid in given_oids[: command.parameters]]
    oids = (*declared, *[types.TEXT] * (command.parameters - len(declared)))
    results = (types.TEXT,) * len(command.calls) if isinstance(command, SessionCalls) else (types.VOID,)
    return StatementPlan(command, None, oids, results)


def _parameter_count(names: Sequence[str | None]) -> int:
    return max([_parameter_number(name, index) for index, name in enumerate(names, start=1)], default=0)


def _parameter_indexes(prepared: Prepared) -> tuple[int, ...] | None:
    indexes = tuple([_parameter_number(name, index) - 1 for index, name in enumerate(prepared.parameters, start=1)])
    return None if indexes == tuple(range(len(indexes))) else indexes


def _parameter_number(name: str | None, index: int) -> int:
    """The number of the client's parameter for SQLite's parameter at `index` (from 1). An unused number has no name.

    Raises:
        SqlError: 42601 for a name that is not a number. SQLite also parses ``$1::int`` as a name.
    """
    if name is None:
        return index
    digits = name.lstrip("$?")
    if not digits.isdigit():
        raise SqlError("42601", f"syntax error at or near {name!r}", hint="Parameters are numbered: $1, $2, ….")
    return int(digits)
