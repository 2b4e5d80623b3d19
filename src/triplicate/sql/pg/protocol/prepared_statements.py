"""Prepared statements and portals of a session: the results of Parse and Bind, with the types for the client."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Column, Cursor, Prepared, Row, Session, TransactionStatus, Value
from triplicate.sql.core.lexer import Statement
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.plans import PlanCache, StatementPlan, plan_statement
from triplicate.sql.pg.protocol.transaction_time import TransactionTime
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.array_parameters import ELEMENT_OF, decode_array
from triplicate.sql.pg.values.datetimes import round_moment, text_of_micros

_INTEGERS = (types.INT2, types.INT4, types.INT8)
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


@dataclass(slots=True)
class Portal:
    """The result of Bind: a statement with its parameters, and the cursor once it has been started."""

    statement: PreparedStatement
    parameters: tuple[Value, ...]
    result_formats: tuple[int, ...]
    cursor: Cursor | None = None
    fetched: list[Row] = field(default_factory=list)
    """Rows that were fetched to determine their types, and are not sent yet."""
    column_oids: tuple[int, ...] | None = None
    """Fixed when the portal or its statement is described, or at the first row; None before."""
    rows_sent: int = 0
    tag: str | None = None
    """The command tag, if it is not the statement's own."""
    is_done: bool = False
    """Whether it has run to its end."""

    def formats(self) -> list[int]:
        """One format per column: 0 text, 1 binary.

        Raises:
            SqlError: 08P01 if Bind has another number of formats.
        """
        count = len(self.statement.plan.column_oids)
        formats = self.result_formats
        if not formats:
            return [0] * count
        if len(formats) == 1:
            return [formats[0]] * count
        if len(formats) != count:
            raise SqlError("08P01", f"the bind message has {len(formats)} result formats but the statement has {count} columns")
        return list(formats)


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
    return PreparedStatement(statement, given_oids, plan, schema_version, is_fixed)


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
    schema_version = session.schema_version
    plan = await plan_statement(session, statement.statement, statement.given_oids, cache, schema_version)
    if statement.is_fixed:
        if plan.parameter_oids != old.parameter_oids:
            schema_version = session.schema_version
            plan = await plan_statement(session, statement.statement, old.parameter_oids, cache, schema_version)
        if plan.prepared is None or _shape(plan) != _shape(old):
            raise SqlError("0A000", wire.CHANGED_RESULT, hint="Prepare the statement again.")
        plan = replace(plan, parameter_oids=old.parameter_oids, column_oids=old.column_oids, names=old.names, typmods=old.typmods)
    statement.plan, statement.schema_version = plan, schema_version


def _shape(plan: StatementPlan) -> tuple[object, ...]:
    """The properties of a plan that a client may know."""
    columns = plan.prepared.columns if plan.prepared is not None else ()
    return tuple(_shown_names(plan, columns)), described_oids(plan), plan.typmods


def bind(statement: PreparedStatement, message: wire.Bind) -> Portal:
    """Create a portal with the decoded parameters.

    Raises:
        SqlError: 08P01 for a wrong number of values or formats, 22023 for an unknown format, and as `decode_parameter`.
    """
    # All faults of a Bind are found here, because an error of Execute could come after a change has been stored.
    oids, count = statement.plan.parameter_oids, len(message.parameters)
    if count != len(oids):
        raise SqlError("08P01", f"the bind message supplies {count} parameters, but the statement requires {len(oids)}")
    formats = message.parameter_formats
    for code in (*formats, *message.result_formats):
        if code not in (0, 1):
            raise SqlError("22023", f"unsupported format code: {code}")
    if len(formats) > 1 and len(formats) != count:
        raise SqlError("08P01", f"the bind message has {len(formats)} parameter formats but {count} parameters")
    values: list[Value] = []
    for index, (data, oid) in enumerate(zip(message.parameters, oids, strict=True)):
        is_binary = bool(formats and (formats[0] if len(formats) == 1 else formats[index]))
        if oid in ELEMENT_OF:
            values.append(None if data is None else decode_array(data, oid, is_binary))
        else:
            values.append(types.decode_parameter(data, oid, is_binary))
    portal = Portal(statement, tuple(values), message.result_formats)
    if statement.plan.column_oids:
        portal.formats()
    return portal


def engine_parameters(portal: Portal, time: TransactionTime, user: str) -> tuple[Value, ...]:
    """The engine's parameters, in its order: the client's and the supplied ones.

    Args:
        time: of the transaction and of the statement. user: the user's name.
    """
    plan = portal.statement.plan
    assert plan.prepared is not None, "only statements of the engine have parameters"
    values = portal.parameters
    for supplied in plan.supplied:
        if supplied.oid == types.TEXT:
            values = (*values, user)
            continue
        text = text_of_micros(time.statement_us if supplied.of_statement else time.transaction_us, supplied.oid)
        values = (*values, text if supplied.precision is None else round_moment(text, supplied.oid, supplied.precision))
    if plan.parameter_indexes is None:
        return values[: len(plan.prepared.parameters)]
    return tuple([values[index] for index in plan.parameter_indexes])


def fix_columns(statement: PreparedStatement, oids: tuple[int, ...]) -> None:
    """Fix the types that the client has received in a description, even if only values would determine them."""
    if statement.plan.column_oids != oids:
        statement.plan = replace(statement.plan, column_oids=oids)


def described_oids(plan: StatementPlan) -> tuple[int, ...]:
    """The columns' types in a description of the statement; text if they are undetermined."""
    return tuple(oid if oid is not None else types.TEXT for oid in plan.column_oids)


def decide_types(portal: Portal) -> None:
    """Fix the portal's column types. An expression of unknown type gets the type of its value in the first row."""
    portal.column_oids = _column_oids(portal, portal.fetched)


def _column_oids(portal: Portal, rows: Sequence[Row]) -> tuple[int, ...]:
    if portal.column_oids is not None:
        return portal.column_oids
    first: Row = rows[0] if rows else ()
    oids: list[int] = []
    for index, oid in enumerate(portal.statement.plan.column_oids):
        by_value = types.oid_of_value(first[index]) if first and oid is None else None
        oids.append(oid if oid is not None else by_value if by_value is not None else types.TEXT)
    return tuple(oids)


def check_rows(portal: Portal, rows: Sequence[Row]) -> None:
    """Check, before a change is stored, that the rows that it returns can be sent. A later error would mean that the change had failed.

    Raises:
        SqlError: as `encode_rows`.
    """
    encode_rows(rows, _column_oids(portal, rows), portal.formats(), portal.statement.plan.shown_typmods)


def row_description(plan: StatementPlan, oids: Sequence[int], formats: Sequence[int]) -> bytes:
    """RowDescription, or NoData for a statement without columns."""
    prepared = plan.prepared
    if prepared is None or not prepared.columns:
        return wire.NO_DATA
    return wire.row_description(
        wire.ColumnDescription(name, oid, types.TYPE_SIZES.get(oid, -1), typmod, result_format)
        for name, oid, typmod, result_format in zip(
            _shown_names(plan, prepared.columns), oids, plan.typmods or [-1] * len(oids), formats, strict=True
        )
    )


def _shown_names(plan: StatementPlan, columns: Sequence[Column]) -> Sequence[str]:
    """The columns' names as in PostgreSQL. If the grammar does not cover the statement, a call has its function's name."""
    if plan.names:
        return plan.names
    called = [_CALL.fullmatch(column.name) if column.origin is None else None for column in columns]
    return [call[1].lower() if call is not None else column.name for call, column in zip(called, columns, strict=True)]


def encode_rows(rows: Sequence[Row], oids: Sequence[int], formats: Sequence[int], typmods: Sequence[int] = ()) -> list[bytes]:
    """Encode rows as DataRow messages.

    Raises:
        SqlError: 22P02 for a value that cannot be sent as its column's type, 22003 for an integer overflow.
    """
    shape = [(oid, bool(shown), typmod) for oid, shown, typmod in zip(oids, formats, typmods or [-1] * len(oids), strict=True)]
    encode = types.encode_value
    encoded = []
    integers = [index for index, oid in enumerate(oids) if oid in _INTEGERS]
    for row in rows:
        for index in integers:
            value = row[index]
            # SQLite converts to a float if integers overflow.
            if type(value) is float and abs(value) >= 2.0**63:
                raise SqlError("22003", "bigint out of range", hint="Cast one side to numeric or double precision.")
        encoded.append(wire.data_row([encode(value, oid, binary, mod) for value, (oid, binary, mod) in zip(row, shape, strict=True)]))
    return encoded


def command_tag(prepared: Prepared, rows: int, affected: int) -> str:
    """PostgreSQL's command tag: INSERT 0 n, UPDATE n, DELETE n, SELECT n, or the words alone."""
    match prepared.tag:
        case "INSERT" | "REPLACE":
            return f"INSERT 0 {affected}"
        case "UPDATE" | "DELETE":
            return f"{prepared.tag} {affected}"
        case "SELECT" | "VALUES" | "WITH" | "EXPLAIN" | "PRAGMA":
            return f"SELECT {rows}"
    return prepared.tag
