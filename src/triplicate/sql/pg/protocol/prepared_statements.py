"""Prepared statements and portals of one session: what Parse and Bind make, with the types that the client is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.interface import Column, Cursor, Prepared, Result, Row, Session, StatementKind, TransactionStatus, Value
from triplicate.sql.pg.ddl.spans import spans_of
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.commands import ClientCommand, EngineStatement, classify
from triplicate.sql.pg.rewrite.catalogue_queries import CatalogueQuery, catalogue_query
from triplicate.sql.pg.rewrite.catalogue_types import column_oid
from triplicate.sql.pg.rewrite.create_table_as import CreateTableAs, column_type, table_query
from triplicate.sql.pg.rewrite.reserved_words import quote_reserved
from triplicate.sql.pg.rewrite.session_calls import SessionCalls
from triplicate.sql.pg.rewrite.setval import number_above_maximum
from triplicate.sql.pg.rewrite.unnest import unnest_as_values
from triplicate.sql.pg.translate import (
    ELEMENT_OF,
    ColumnsByTable,
    KeysByTable,
    SuppliedParameter,
    Translation,
    decode_array,
    named_tables,
    round_moment,
    text_of_micros,
    translate,
)
from triplicate.sql.pg.values import types

LONG_TEXT = 16 * 1024
"""Characters up to which a statement is read on the loop, which takes some 40 ms then."""
_GROUPS = re.compile(r"\bgroup\s+by\b", re.IGNORECASE)
_INTEGERS = (types.INT2, types.INT4, types.INT8)
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(.*\)", re.DOTALL)


@dataclass(slots=True)
class PreparedStatement:
    """What Parse made. `prepared` is None for a session command (SET, SHOW, …) and for an empty statement."""

    command: ClientCommand
    prepared: Prepared | None
    parameter_oids: tuple[int, ...] = ()
    column_oids: tuple[int | None, ...] = ()
    """None where only a value can tell the type of an expression."""
    names: tuple[str, ...] = ()
    """What the client calls the columns; empty where the engine's own names are shown."""
    moments: tuple[SuppliedParameter, ...] = ()
    """Parameters of the engine's statement behind the client's, which are times."""
    typmods: tuple[int, ...] = ()
    """PostgreSQL's type modifiers of the columns: a numeric is shown with its scale."""
    shown_typmods: tuple[int, ...] = ()
    """The same, and those of expressions whose scale is known, which the client is not told."""
    lock: str = ""
    """``FOR UPDATE`` and its kin: in a transaction, the statement needs the writer."""
    sql: str = ""
    given_oids: tuple[int, ...] = ()
    """What it was made of."""
    schema_version: tuple[int, int] = (0, 0)
    """Of the schema that it was made for."""
    is_fixed: bool = False
    """The client may know the columns and parameters: they stay what they are."""


@dataclass(slots=True)
class Portal:
    """What Bind made: a statement with its parameters, and the cursor once it has been started."""

    statement: PreparedStatement
    parameters: tuple[Value, ...]
    result_formats: tuple[int, ...]
    cursor: Cursor | None = None
    kept: list[Row] = field(default_factory=list)
    """Rows fetched to learn their types, not sent yet."""
    column_oids: tuple[int, ...] | None = None
    """Decided when the portal or its statement is described, or at the first row; fixed from then on."""
    rows_sent: int = 0
    tag: str | None = None
    """What completes the command instead of the statement's own tag."""
    is_done: bool = False
    """It has run to its end."""

    def formats(self) -> list[int]:
        """One format per column: 0 text, 1 binary."""
        count = len(self.statement.column_oids)
        given = self.result_formats
        if not given:
            return [0] * count
        if len(given) == 1:
            return [given[0]] * count
        if len(given) != count:
            raise SqlError("08P01", f"the bind message has {len(given)} result formats but the statement has {count} columns")
        return list(given)


async def prepare_statement(session: Session, sql: str, given_oids: Sequence[int]) -> PreparedStatement:
    """Check one statement and find the types of its parameters and columns.

    Args:
        given_oids: what the client said in Parse; 0 and missing ones are found from the columns they meet.

    Raises:
        SqlError: what the gate or SQLite finds.
    """
    # Asked first: a change of the schema meanwhile makes the statement outdated.
    schema_version = session.schema_version
    statement = await _prepare(session, sql, given_oids)
    statement.sql, statement.given_oids, statement.schema_version = sql, tuple(given_oids), schema_version
    return statement


async def prepare_again(session: Session, statement: PreparedStatement) -> None:
    """Bring a statement up to date where the schema has changed since it was prepared: it may mean other tables and types now.

    Raises:
        SqlError: 0A000, the client may know other columns of its result. And as `prepare_statement`.
    """
    if statement.schema_version == session.schema_version or statement.prepared is None or session.status is TransactionStatus.FAILED:
        return
    made = await prepare_statement(session, statement.sql, statement.given_oids)
    if statement.is_fixed and made.parameter_oids != statement.parameter_oids:
        made = await prepare_statement(session, statement.sql, statement.parameter_oids)
    if statement.is_fixed and (made.prepared is None or _shape(made) != _shape(statement)):
        raise SqlError("0A000", wire.CHANGED_RESULT, hint="Prepare the statement again.")
    statement.prepared, statement.moments, statement.lock = made.prepared, made.moments, made.lock
    statement.shown_typmods = made.shown_typmods
    statement.schema_version = made.schema_version
    if not statement.is_fixed:
        statement.parameter_oids, statement.column_oids = made.parameter_oids, made.column_oids
        statement.names, statement.typmods = made.names, made.typmods


def _shape(statement: PreparedStatement) -> tuple[object, ...]:
    """What a client may know of a result."""
    columns = statement.prepared.columns if statement.prepared is not None else ()
    return tuple(_shown_names(statement, columns)), described_oids(statement), statement.typmods


async def _prepare(session: Session, sql: str, given_oids: Sequence[int]) -> PreparedStatement:
    command, asked, names = await aside_if_long(session, sql, _look_into, sql)
    if isinstance(command, SessionCalls):
        return session_calls_statement(command, given_oids)
    if not isinstance(command, EngineStatement):
        return PreparedStatement(command, None)
    if asked is not None:
        return await _prepare_catalogue_query(session, command, asked, given_oids)
    if session.status is TransactionStatus.FAILED:
        return PreparedStatement(command, await session.prepare(command.text))
    filled = table_query(command.text)
    if filled is not None:
        statement = await _prepare_table_query(session, command, filled, given_oids)
        if statement is not None:
            return statement
    command = await _with_meaning(session, command)
    tables = await _tables(session, names)
    keys = await _keys(session, command.text, tables)
    translation = await aside_if_long(session, sql, translate, command.text, tables, tuple(given_oids), keys)
    try:
        prepared = await session.prepare(translation.sql)
    except SqlError as error:
        if error.position is not None:
            error.position = translation.origin(error.position)
        raise
    if prepared.kind is StatementKind.EMPTY:
        return PreparedStatement(command, None)
    return _translated(command, prepared, translation)


async def _with_meaning(session: Session, command: EngineStatement) -> EngineStatement:
    """A definition on a table that is there, with the meaning that its expressions have in PostgreSQL."""
    found = spans_of(command.text) if command.text[:6].upper() in ("ALTER ", "CREATE") else None
    columns = await session.table_columns(found.table) if found is not None and found.spans else None
    return command if found is None or columns is None else EngineStatement(found.rewrite(command.text, columns))


async def _prepare_table_query(
    session: Session, command: EngineStatement, filled: CreateTableAs, given_oids: Sequence[int]
) -> PreparedStatement | None:
    """CREATE TABLE AS, with the columns and the meaning that its query has; None where the query is read by SQLite alone."""
    names = await aside_if_long(session, filled.query, named_tables, filled.query)
    tables = await _tables(session, names)
    keys = await _keys(session, filled.query, tables)
    asked = await aside_if_long(session, filled.query, translate, filled.query, tables, tuple(given_oids), keys)
    if not asked.is_understood:
        return None
    result = await session.prepare(asked.sql)
    if result.kind is not StatementKind.READ:
        raise SqlError("42601", "CREATE TABLE AS takes a query")
    outputs = asked.outputs if asked.outputs is not None and len(asked.outputs) == len(result.columns) else ()
    found = [
        (
            outputs[index][0] if outputs else column.name,
            column_type(column, outputs[index][1] if outputs else None, is_exact=not asked.is_united),
        )
        for index, column in enumerate(result.columns)
    ]
    columns = filled.named(found)
    head, insert = filled.definition(columns), filled.insert(columns)
    made = (*(table for table in tables if table[0].lower() != filled.table.lower()), (filled.table, tuple(columns)))
    filling = await aside_if_long(session, insert, translate, insert, made, tuple(given_oids), keys)
    return _translated(command, await session.prepare(head + filling.sql), filling)


def _translated(command: ClientCommand, prepared: Prepared, translation: Translation) -> PreparedStatement:
    columns, outputs = prepared.columns, translation.outputs
    if outputs is None or len(outputs) != len(columns):
        outputs = ()
    oids: list[int | None] = []
    typmods: list[int] = []
    for index, column in enumerate(columns):
        told = outputs[index][1] if outputs else None
        declared = types.oid_of_declared(column.declared_type) if column.declared_type else None
        # Of united queries SQLite tells what the first one declares.
        oids.append(told if told is not None else declared)
        typmods.append(types.typmod_of_declared(column.declared_type) if told is None or told == declared else -1)
    scales = translation.scales if outputs and translation.scales else (None,) * len(columns)
    shown = [types.typmod_of_scale(scale) if typmod < 0 and scale else typmod for typmod, scale in zip(typmods, scales, strict=True)]
    return PreparedStatement(
        command,
        prepared,
        translation.parameter_oids,
        tuple(oids),
        tuple(name for name, _ in outputs),
        translation.moments,
        tuple(typmods),
        tuple(shown),
        translation.lock,
    )


async def aside_if_long(session: Session, sql: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Run a function over a statement's text: a long one would hold the loop, and with it the node's signs of life, for seconds."""
    if len(sql) <= LONG_TEXT:
        return function(*arguments)
    return await session.offload(function, *arguments)


def _look_into(sql: str) -> tuple[ClientCommand, CatalogueQuery | None, Sequence[str]]:
    """What a statement is, what it asks of the catalogue, and which tables it names."""
    sql = unnest_as_values(quote_reserved(number_above_maximum(sql)))
    command = classify(sql)
    if not isinstance(command, EngineStatement):
        return command, None, ()
    asked = catalogue_query(sql)
    return command, asked, () if asked is not None else tuple(named_tables(command.text))


async def _tables(session: Session, names: Sequence[str]) -> ColumnsByTable:
    found = []
    for name in names:
        columns = await session.table_columns(name)
        if columns is not None:
            found.append((name, tuple(columns)))
    return tuple(found)


async def _keys(session: Session, sql: str, tables: ColumnsByTable) -> KeysByTable | None:
    """The primary keys of the tables, where the statement groups: columns that depend on a grouped key may stand beside it."""
    if _GROUPS.search(sql) is None:
        return None
    return tuple([(name, tuple(await session.table_key(name))) for name, _ in tables])


async def _prepare_catalogue_query(
    session: Session, command: EngineStatement, asked: CatalogueQuery, given_oids: Sequence[int]
) -> PreparedStatement:
    """A query of the catalogue: the rewriting tells the types that the columns do not declare."""
    prepared = await session.prepare(asked.text)
    oids: list[int] = []
    for number in range(1, _parameter_count(prepared.parameters) + 1):
        given = given_oids[number - 1] if number <= len(given_oids) else 0
        oids.append(given or asked.parameters.get(number, types.TEXT))
    told: Sequence[int | None] = asked.columns if len(asked.columns) == len(prepared.columns) else [None] * len(prepared.columns)
    columns = [column_oid(column) or oid for column, oid in zip(prepared.columns, told, strict=True)]
    return PreparedStatement(command, prepared, tuple(oids), tuple(columns))


def session_calls_statement(command: SessionCalls, given_oids: Sequence[int]) -> PreparedStatement:
    """set_config and current_setting: parameters and results are text."""
    given = [oid or types.TEXT for oid in given_oids[: command.parameters]]
    oids = (*given, *[types.TEXT] * (command.parameters - len(given)))
    return PreparedStatement(command, None, oids, (types.TEXT,) * len(command.calls))


def _parameter_count(names: Sequence[str | None]) -> int:
    count = 0
    for index, name in enumerate(names, start=1):
        count = max(count, _parameter_number(name, index))
    return count


def _parameter_number(name: str | None, index: int) -> int:
    """Which of the parameters SQLite's parameter at `index` (from 1) is; a number that is not used has no name.

    Raises:
        SqlError: 42601 for a name that is no number, which SQLite reads in ``$1::int`` too.
    """
    if name is None:
        return index
    digits = name.lstrip("$?")
    if not digits.isdigit():
        raise SqlError("42601", f"syntax error at or near {name!r}", hint="Parameters are numbered: $1, $2, ….")
    return int(digits)


def bind(statement: PreparedStatement, message: wire.Bind) -> Portal:
    """Decode the parameters. Raises SqlError 08P01 for a wrong number, 22P02 and 22P03 for values that do not fit."""
    expected, given = len(statement.parameter_oids), len(message.parameters)
    if given != expected:
        raise SqlError("08P01", f"the bind message supplies {given} parameters, but the statement requires {expected}")
    formats = message.parameter_formats
    for code in (*formats, *message.result_formats):
        if code not in (0, 1):
            raise SqlError("22023", f"unsupported format code: {code}")
    if len(formats) > 1 and len(formats) != given:
        raise SqlError("08P01", f"the bind message has {len(formats)} parameter formats but {given} parameters")
    values: list[Value] = []
    for index, (data, oid) in enumerate(zip(message.parameters, statement.parameter_oids, strict=True)):
        is_binary = bool(formats and (formats[0] if len(formats) == 1 else formats[index]))
        if oid in ELEMENT_OF:
            values.append(None if data is None else decode_array(data, oid, is_binary))
        else:
            values.append(types.decode_parameter(data, oid, is_binary))
    return Portal(statement, tuple(values), message.result_formats)


def engine_parameters(portal: Portal, transaction_us: int, statement_us: int, user: str) -> list[Value]:
    """The engine's parameters by number: the client's, and the times that the statement asks for.

    Args:
        transaction_us, statement_us: when they began, in µs since 1970. user: the user's name.
    """
    prepared = portal.statement.prepared
    assert prepared is not None, "only statements of the engine have parameters"
    values: list[Value] = list(portal.parameters)
    for moment in portal.statement.moments:
        if moment.oid == types.TEXT:
            values.append(user)
            continue
        text = text_of_micros(statement_us if moment.of_statement else transaction_us, moment.oid)
        values.append(text if moment.precision is None else round_moment(text, moment.oid, moment.precision))
    return [values[_parameter_number(name, index) - 1] for index, name in enumerate(prepared.parameters, start=1)]


def described_oids(statement: PreparedStatement) -> tuple[int, ...]:
    """The types told when only the statement is described: text where nothing tells."""
    return tuple(oid if oid is not None else types.TEXT for oid in statement.column_oids)


def decide_types(portal: Portal) -> None:
    """Fix the portal's column types: an expression takes the type of the first row's value."""
    if portal.column_oids is None:
        first: Row = portal.kept[0] if portal.kept else ()
        oids: list[int] = []
        for index, oid in enumerate(portal.statement.column_oids):
            by_value = types.oid_of_value(first[index]) if first and oid is None else None
            oids.append(oid if oid is not None else by_value if by_value is not None else types.TEXT)
        portal.column_oids = tuple(oids)


def row_description(statement: PreparedStatement, oids: Sequence[int], formats: Sequence[int]) -> bytes:
    """RowDescription, or NoData for a statement without columns."""
    prepared = statement.prepared
    if prepared is None or not prepared.columns:
        return wire.NO_DATA
    return wire.row_description(
        (name, oid, types.TYPE_SIZES.get(oid, -1), typmod, result_format)
        for name, oid, typmod, result_format in zip(
            _shown_names(statement, prepared.columns), oids, statement.typmods or [-1] * len(oids), formats, strict=True
        )
    )


def _shown_names(statement: PreparedStatement, columns: Sequence[Column]) -> Sequence[str]:
    """As PostgreSQL names them; a call in a statement that is not understood is named after its function."""
    if statement.names:
        return statement.names
    called = [_CALL.fullmatch(column.name) if column.origin is None else None for column in columns]
    return [call[1].lower() if call is not None else column.name for call, column in zip(called, columns, strict=True)]


def encode_rows(rows: Sequence[Row], oids: Sequence[int], formats: Sequence[int], typmods: Sequence[int] = ()) -> list[bytes]:
    """DataRow messages.

    Raises:
        SqlError: 22P02 for a value that cannot be sent as its column's type, 22003 for the result of integers that is none.
    """
    shape = [(oid, bool(shown), typmod) for oid, shown, typmod in zip(oids, formats, typmods or [-1] * len(oids), strict=True)]
    encode = types.encode_value
    encoded = []
    integers = [index for index, oid in enumerate(oids) if oid in _INTEGERS]
    for row in rows:
        for index in integers:
            value = row[index]
            # SQLite goes on with a float where the result of integers is none.
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
