"""Prepared statements and portals of a session: the results of Parse and Bind, with the types for the client."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Column, Cursor, Row, Session, StatementKind, TransactionStatus, Value
from triplicate.sql.core.lexer import Statement
from triplicate.sql.core.statement_statistics import StatementUse
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.plans import PlanCache, StatementPlan, cached_plan, plan_statement, split_query
from triplicate.sql.pg.protocol.query_shapes import shape_of
from triplicate.sql.pg.protocol.transaction_time import TransactionTime
from triplicate.sql.pg.syntax.as_of_clause import AsOfQuery
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.datetimes import round_moment, text_of_micros
from triplicate.sql.pg.values.field_codecs import ParameterDecoder, parameter_decoder

_SHAPES = 2000
"""Capacity of the caches of what follows from the types and formats of parameters or columns."""
_READ = StatementKind.READ
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(.*\)", re.DOTALL)


@dataclass(slots=True)
class PreparedStatement:
    """The result of Parse. Its plan is replaced when the schema changes."""

    statement: Statement
    given_oids: tuple[int, ...]
    """The parameters' types in Parse."""
    plan: StatementPlan
    schema_version: tuple[int, int]
    """The version of the schema for which the plan was made."""
    is_fixed: bool
    """Whether the client may know the columns and parameters, so that their types and names must not change."""
    use: StatementUse | None = None
    """Its entry in the statistics, once it has run."""


@dataclass(slots=True)
class Portal:
    """The result of Bind: a statement with its parameters, and the cursor once it has been started."""

    statement: PreparedStatement
    parameters: tuple[Value, ...]
    result_formats: tuple[int, ...]
    cursor: Cursor | None = None
    fetched: Sequence[Row] = ()
    """Rows that were fetched when it was started, and are not sent yet."""
    has_more: bool = True
    """Whether the cursor may have rows that are not fetched yet."""
    rows_sent: int = 0
    tag: str | None = None
    """The command tag, if it is not the statement's own."""
    began_s: float = 0.0
    """When it was started, or continued, by the clock; 0 between two executions."""
    spent_s: float = 0.0
    """The time of its executions before."""
    is_done: bool = False
    """Whether it has run to its end."""
    savepoint: int = 0
    """The innermost savepoint when it was bound or, if that is later, started."""

    async def close(self) -> None:
        """Close the cursor. One that has come to its end has closed its statement itself."""
        if self.cursor is not None and self.has_more:
            await self.cursor.close()

    def formats(self) -> tuple[int, ...]:
        """One format per column: 0 text, 1 binary.

        Raises:
            SqlError: 08P01 if Bind has another number of formats.
        """
        return self.statement.plan.result_form(self.result_formats).formats

    def encode(self, rows: Sequence[Row]) -> bytes:
        """The DataRow messages of some rows of the result; see `RowEncoder`."""
        return self.statement.plan.result_form(self.result_formats).encoder.encode(rows)


async def prepare_statement(
    session: Session,
    statement: Statement,
    given_oids: tuple[int, ...],
    cache: PlanCache,
    *,
    is_fixed: bool,
    runs_at_once: bool = False,
) -> PreparedStatement:
    """Prepare one statement for the schema that the session sees; see `plan_statement`."""
    schema_version = session.schema_version
    plan = await plan_statement(session, statement, given_oids, cache, schema_version, runs_at_once=runs_at_once)
    return PreparedStatement(statement, given_oids, plan, schema_version, is_fixed and not isinstance(plan.command, AsOfQuery))


async def portal_of_shape(session: Session, sql: str, cache: PlanCache) -> Portal | None:
    """The portal of a simple query whose plan is that of its shape, see `query_shapes`; None for a query that is planned by itself.

    A query that is wrong is planned by itself, too: its error names the query's own text. In a transaction such an error would fail the
    transaction at once, so there only plans that are in the cache are used.
    """
    shape = shape_of(sql)
    if shape is None:
        return None
    oids = (types.INT4,) * len(shape.constants)
    text, version = (await split_query(session, shape.text))[0], session.schema_version
    try:
        plan = cached_plan(session, text, oids, cache, version)
        if plan is None:
            if session.status is not TransactionStatus.IDLE:
                return None
            plan = await plan_statement(session, text, oids, cache, version)
    except SqlError:
        return None
    prepared = plan.prepared
    if prepared is None or prepared.kind is not _READ or plan.parameter_oids != oids:
        return None
    return Portal(PreparedStatement(text, oids, plan, version, is_fixed=False), shape.constants, ())


def note_examined(statement: PreparedStatement, cache: PlanCache) -> None:
    """Cache the plan of a statement that ran without being examined, and is therefore correct."""
    plan = statement.plan = replace(statement.plan, unexamined=None)
    cache.add(statement.schema_version[0], statement.statement.sql, statement.given_oids, plan)


async def update_plan(session: Session, statement: PreparedStatement, cache: PlanCache) -> None:
    """Plan a statement again if the schema has changed, because it may refer to other tables and types now.

    Raises:
        SqlError: 0A000 if the result has other columns than the client may know; and as `plan_statement`.
    """
    old = statement.plan
    if statement.schema_version == session.schema_version or old.prepared is None or session.status is TransactionStatus.FAILED:
        return
    if isinstance(old.command, AsOfQuery) and not old.command.clause.parameter:
        return  # The tables of then stay as they were.
    schema_version = session.schema_version
    plan = await plan_statement(session, statement.statement, statement.given_oids, cache, schema_version)
    if statement.is_fixed:
        if plan.parameter_oids != old.parameter_oids:
            schema_version = session.schema_version
            plan = await plan_statement(session, statement.statement, old.parameter_oids, cache, schema_version)
        plan = check_shape(plan, old)
    statement.plan, statement.schema_version = plan, schema_version


def check_shape(plan: StatementPlan, old: StatementPlan) -> StatementPlan:
    """A plan in the place of one that the client may know, with what it knows. Raises SqlError 0A000 if the result has other columns."""
    if plan.prepared is None or _shape(plan) != _shape(old):
        is_past = isinstance(plan.command, AsOfQuery)
        hint = "Write the point of AS OF as a constant." if is_past else "Prepare the statement again."
        raise SqlError("0A000", wire.CHANGED_RESULT, hint=hint)
    return replace(plan, parameter_oids=old.parameter_oids, names=old.names, typmods=old.typmods)


def _shape(plan: StatementPlan) -> tuple[object, ...]:
    """The properties of a plan that a client may know."""
    columns = plan.prepared.columns if plan.prepared is not None else ()
    return _shown_names(plan, columns), plan.column_oids, plan.typmods


def bind(
    statement: PreparedStatement, formats: tuple[int, ...], values: tuple[bytes | None, ...], result_formats: tuple[int, ...]
) -> Portal:
    """Create a portal with the decoded parameters.

    Args:
        formats: of the values. values, result_formats: as in Bind.

    Raises:
        SqlError: 08P01 for a wrong number of values or formats, 22023 for an unknown format, and as `decode_parameter`.
    """
    # All faults of a Bind are found here, because an error of Execute could come after a change has been stored.
    plan = statement.plan
    oids, count = plan.parameter_oids, len(values)
    if count != len(oids):
        raise SqlError("08P01", f"the bind message supplies {count} parameters, but the statement requires {len(oids)}")
    decoders = parameter_decoders(oids, formats, result_formats)
    parameters = tuple([decode(data) for decode, data in zip(decoders, values, strict=True)])
    if plan.column_oids:
        plan.result_form(result_formats)  # Checks the number of the formats.
    return Portal(statement, parameters, result_formats)


@lru_cache(maxsize=_SHAPES)
def parameter_decoders(oids: tuple[int, ...], formats: tuple[int, ...], result_formats: tuple[int, ...]) -> tuple[ParameterDecoder, ...]:
    """The decoders of a Bind's parameters, after a check of its formats."""
    for code in (*formats, *result_formats):
        if code not in (0, 1):
            raise SqlError("22023", f"unsupported format code: {code}")
    if len(formats) > 1 and len(formats) != len(oids):
        raise SqlError("08P01", f"the bind message has {len(formats)} parameter formats but {len(oids)} parameters")
    each = (formats or (0,)) * len(oids) if len(formats) < 2 else formats
    return tuple([parameter_decoder(oid, bool(code)) for oid, code in zip(oids, each, strict=True)])


def engine_parameters(portal: Portal, time: TransactionTime, users: Sequence[str], live: Sequence[str] = ()) -> tuple[Value, ...]:
    """The engine's parameters, in its order: the client's and the supplied ones.

    Args:
        time: of the transaction and of the statement. users: by `SessionName`. live: the rows of the plan's live tables.
    """
    plan = portal.statement.plan
    assert plan.prepared is not None, "only statements of the engine have parameters"
    values = portal.parameters
    if plan.parameter_indexes is None and not plan.supplied and len(values) == len(plan.prepared.parameters):
        return values
    for supplied in plan.supplied:
        if supplied.live is not None:
            values = (*values, live[supplied.live])
            continue
        if supplied.oid == types.TEXT:
            values = (*values, users[supplied.user])
            continue
        text = text_of_micros(time.statement_us if supplied.of_statement else time.transaction_us, supplied.oid)
        values = (*values, text if supplied.precision is None else round_moment(text, supplied.oid, supplied.precision))
    if plan.parameter_indexes is None:
        return values[: len(plan.prepared.parameters)]
    return tuple([values[index] for index in plan.parameter_indexes])


def check_rows(portal: Portal, rows: Sequence[Row]) -> None:
    """Check, before a change is stored, that the rows that it returns can be sent. A later error would mean that the change had failed.

    Raises:
        SqlError: as `Portal.encode`.
    """
    portal.encode(rows)


def row_description(plan: StatementPlan, formats: tuple[int, ...]) -> bytes:
    """RowDescription, or NoData for a statement without columns."""
    prepared = plan.prepared
    if prepared is None or not prepared.columns:
        return wire.NO_DATA
    return _row_description(_shown_names(plan, prepared.columns), plan.column_oids, plan.typmods, formats)


@lru_cache(maxsize=_SHAPES)
def _row_description(names: tuple[str, ...], oids: tuple[int, ...], typmods: tuple[int, ...], formats: tuple[int, ...]) -> bytes:
    columns = zip(names, oids, typmods or (-1,) * len(oids), formats, strict=True)
    return wire.row_description(
        wire.ColumnDescription(name, oid, types.TYPE_SIZES.get(oid, -1), mod, code) for name, oid, mod, code in columns
    )


def shown_names(plan: StatementPlan) -> Sequence[str]:
    """The names of the columns of a statement's result for the client."""
    return _shown_names(plan, plan.prepared.columns if plan.prepared is not None else ())


def _shown_names(plan: StatementPlan, columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns' names as in PostgreSQL. If the grammar does not cover the statement, a call has its function's name."""
    if plan.names:
        return plan.names
    called = [_CALL.fullmatch(column.name) if column.origin is None else None for column in columns]
    return tuple([call[1].lower() if call is not None else column.name for call, column in zip(called, columns, strict=True)])


@lru_cache(maxsize=_SHAPES)
def completion(tag: str, rows: int, affected: int) -> bytes:
    """CommandComplete, see `command_tag`."""
    return wire.command_complete(command_tag(tag, rows, affected))


def command_tag(tag: str, rows: int, affected: int) -> str:
    """PostgreSQL's command tag: INSERT 0 n, UPDATE n, DELETE n, SELECT n, or the words alone."""
    match tag:
        case "INSERT" | "REPLACE":
            return f"INSERT 0 {affected}"
        case "UPDATE" | "DELETE":
            return f"{tag} {affected}"
        case "SELECT" | "VALUES" | "WITH" | "EXPLAIN" | "PRAGMA":
            return f"SELECT {rows}"
    return tag
