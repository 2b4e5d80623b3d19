"""COPY TO STDOUT: the rows of a query as text, CSV or binary data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Row, StatementKind
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.prepared_statements import Portal, prepare_statement, shown_names
from triplicate.sql.pg.syntax.copy_statement import CopyFormat, CopyHeader, CopyOptions
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.copy_binary import HEADER, TRAILER, binary_row
from triplicate.sql.pg.values.copy_csv import CsvWriter
from triplicate.sql.pg.values.copy_text import TextWriter
from triplicate.sql.pg.values.copy_values import check_integers, shown_rows


class PortalRows(Protocol):
    """Runs a statement whose rows do not go out as DataRow messages."""

    async def start(self, portal: Portal) -> None: ...

    async def next_rows(self, portal: Portal) -> Sequence[Row]: ...


class CopyOut:
    """One COPY TO STDOUT."""

    def __init__(self, state: ConnectionState, portals: PortalRows) -> None:
        self._state = state
        self._portals = portals

    async def run(self, query: str, options: CopyOptions) -> None:
        """Run a query, send its rows and the completion.

        Raises:
            SqlError: as the query; 42P10 for an option that names another column than those of the query; 0A000 without columns; 57014 if
                it is cancelled.
        """
        portal = await self._portal(query)
        try:
            await self._portals.start(portal)
            count = await self._send(portal, options)
        finally:
            await portal.close()
        self._state.stream.write(wire.COPY_DONE)
        self._state.stream.write(wire.command_complete(f"COPY {count}"))

    async def _portal(self, query: str) -> Portal:
        state = self._state
        statement = await prepare_statement(state.session, statement_of(query), (), state.plans, is_fixed=False)
        plan = statement.plan
        if plan.parameter_oids:
            raise SqlError("42P02", "there is no parameter $1 in a COPY query", hint="Write the values into the query.")
        if plan.prepared is None or plan.prepared.kind not in (StatementKind.READ, StatementKind.WRITE):
            raise SqlError("0A000", "COPY query must be a SELECT, or a change with RETURNING")
        if not plan.prepared.columns:
            raise SqlError("0A000", "COPY query must have a RETURNING clause")
        return Portal(statement, (), ())

    async def _send(self, portal: Portal, options: CopyOptions) -> int:
        """Send the rows; returns their number."""
        state, stream = self._state, self._state.stream
        plan, oids = portal.statement.plan, portal.statement.plan.column_oids
        names = shown_names(plan)
        is_change = plan.prepared is not None and plan.prepared.kind is StatementKind.WRITE
        is_binary = options.format is CopyFormat.BINARY
        encode, head = _encoder(options, names, oids, plan.shown_typmods)
        stream.write(wire.copy_out_response(len(oids), is_binary=is_binary))
        if options.header is not CopyHeader.NONE:
            stream.write(wire.copy_data(head))
            head = b""
        count = 0
        while rows := await self._portals.next_rows(portal):
            for data in encode(rows):
                stream.write(wire.copy_data(head + data))  # PostgreSQL sends the binary header together with the first row.
                head = b""
            count += len(rows)
            if stream.wants_flush:
                await stream.flush()
            # A change may already be stored, so a cancel comes too late for it.
            if stream.is_lost or (state.is_cancelled and not is_change):
                raise SqlError("57014", "canceling statement due to user request")
        if is_binary:
            stream.write(wire.copy_data(head + TRAILER))
        return count


def _encoder(
    options: CopyOptions, names: Sequence[str], oids: Sequence[int], typmods: Sequence[int]
) -> tuple[Callable[[Sequence[Row]], list[bytes]], bytes]:
    """(a function from rows to the data of each, the header)"""
    typmods = typmods or [-1] * len(oids)
    if options.format is CopyFormat.BINARY:
        return lambda rows: _binary(rows, oids, typmods), HEADER
    writer = CsvWriter(options, names) if options.format is CopyFormat.CSV else TextWriter(options)

    def lines(rows: Sequence[Row]) -> list[bytes]:
        return [line.encode("utf-8", "surrogateescape") for line in writer.lines(shown_rows(rows, oids, typmods))]

    return lines, writer.header(names).encode() if options.header is not CopyHeader.NONE else b""


def _binary(rows: Sequence[Row], oids: Sequence[int], typmods: Sequence[int]) -> list[bytes]:
    for column, oid in zip(zip(*rows, strict=True), oids, strict=True):
        check_integers(column, oid)
    shape = list(zip(oids, typmods, strict=True))
    encode = types.encode_value
    return [binary_row([encode(value, oid, True, typmod) for value, (oid, typmod) in zip(row, shape, strict=True)]) for row in rows]
