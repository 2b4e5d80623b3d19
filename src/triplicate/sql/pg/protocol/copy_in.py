"""COPY FROM STDIN: the client's data become rows of a table, or change its rows, in slices of one transaction.

The writer is claimed when the first slice is complete, so that a short COPY of a slow client does not keep it. Data that have arrived
meanwhile stay in the connection's inbox, which is bounded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from operator import length_hint
from typing import Protocol

from triplicate.errors import SqlError
from triplicate.sql.core.interface import BulkChange, Prepared, SchemaMoved, StatementKind, TransactionStatus, Value
from triplicate.sql.core.lexer import quote, statement_of
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.implicit_transaction import ImplicitTransaction
from triplicate.sql.pg.protocol.prepared_statements import PreparedStatement, prepare_statement, update_plan
from triplicate.sql.pg.protocol.protocol_state import TURN_COST
from triplicate.sql.pg.protocol.setting_commands import SettingCommands
from triplicate.sql.pg.syntax.copy_statement import CopyAction, CopyFormat, CopyStatement
from triplicate.sql.pg.values.copy_binary import BinaryReader
from triplicate.sql.pg.values.copy_csv import CsvReader
from triplicate.sql.pg.values.copy_lines import CopyPlace, CopyRows
from triplicate.sql.pg.values.copy_text import TextReader
from triplicate.sql.pg.values.copy_values import RowConverter

SLICE_BYTES = 64 * 1024
"""Bytes of data that are inserted at once, in a few milliseconds."""
_COPY_FROM = Prepared("", StatementKind.WRITE, (), (), "COPY FROM")


class RowReader(Protocol):
    """Reads rows of one of the formats."""

    def feed(self, data: bytes) -> CopyRows: ...

    def finish(self) -> CopyRows: ...


class _Received:
    """Data of the client that arrived together."""

    __slots__ = ("data", "is_last")

    def __init__(self, data: bytes, is_last: bool) -> None:
        self.data = data
        self.is_last = is_last


class _SliceRows:
    """The rows of one slice, which are read and converted when they are iterated."""

    def __init__(self, read: Callable[[], CopyRows], convert: Callable[[CopyRows], Iterable[Sequence[Value]]]) -> None:
        self._read = read
        self._convert = convert
        self._lines: Sequence[int] = ()
        self._remaining: Iterator[Sequence[Value]] = iter(())

    def __iter__(self) -> Iterator[Sequence[Value]]:
        found = self._read()
        if found.rows or found.error is not None:
            self._remaining = iter(self._convert(found))
            self._lines = found.lines
        return self._remaining

    @property
    def line(self) -> int | None:
        """The line of the row that was iterated last, None before the first one."""
        count = len(self._lines) - length_hint(self._remaining)
        return self._lines[count - 1] if count else None


class CopyIn:
    """One COPY FROM STDIN."""

    def __init__(self, state: ConnectionState, transaction: ImplicitTransaction) -> None:
        self._state = state
        self._transaction = transaction
        self._is_timed_out = False

    def check_access(self, settings: SettingCommands) -> None:
        """Check that this node and the transaction may write. Raises SqlError 25006."""
        self._state.session.check_prepared(_COPY_FROM)
        settings.check_access(_COPY_FROM, "")

    async def run(self, command: CopyStatement, columns: Sequence[str], *, commits: bool) -> None:
        """Ask for the data, store them and send the completion.

        Args:
            columns: names of the columns that the data have.
            commits: whether a transaction that begins here is committed before the completion is sent.

        Raises:
            SqlError: as `CopyCommands.run`.
        """
        state = self._state
        commits = commits and state.session.status is TransactionStatus.IDLE
        await self._transaction.begin()
        key = [] if command.options.action is CopyAction.INSERT else (await state.session.special_columns(command.table)).key
        change = statement_of(_change(command, columns, key))
        statement = await prepare_statement(state.session, change, (), state.plans, is_fixed=True)
        if statement.plan.prepared is not None:
            await state.session.check_rights(statement.plan.prepared)
        is_binary = command.options.format is CopyFormat.BINARY
        state.stream.write(wire.copy_in_response(len(columns), is_binary=is_binary))
        await state.stream.flush()
        async with self._time_limit():
            count = await self._store(command, columns, statement)
            if commits:
                await self._transaction.commit()
        state.stream.write(wire.command_complete(f"COPY {count}"))

    async def _store(self, command: CopyStatement, columns: Sequence[str], statement: PreparedStatement) -> int:
        """Store the data of the client; returns the number of rows."""
        options, place = command.options, CopyPlace(command.table)
        is_binary = options.format is CopyFormat.BINARY
        reader = _reader(command, place, columns)
        oids = statement.plan.parameter_oids
        converter = RowConverter(place, columns, oids, is_binary=is_binary, delimiter=options.delimiter)
        bulk: BulkChange | None = None
        while True:
            received = await self._receive()
            bulk = bulk or await self._begin(statement)
            for start in range(0, len(received.data), SLICE_BYTES):
                data = received.data[start : start + SLICE_BYTES]
                await self._insert(bulk, place, _SliceRows(lambda data=data: reader.feed(data), converter.convert))  # type: ignore[misc]
            if received.is_last:
                await self._insert(bulk, place, _SliceRows(reader.finish, converter.convert))
                return bulk.finish()

    async def _insert(self, bulk: BulkChange, place: CopyPlace, rows: _SliceRows) -> None:
        try:
            await bulk.run(rows)
        except SqlError as error:
            if error.context is None and rows.line is not None:
                place.mark(error, rows.line)
            raise

    async def _begin(self, statement: PreparedStatement) -> BulkChange:
        """Claim the writer, and begin the change for the schema that is then the present one."""
        session = self._state.session
        await session.claim_writer(_COPY_FROM.tag)
        oids = statement.plan.parameter_oids
        await update_plan(session, statement, self._state.plans)
        if statement.plan.prepared is None or statement.plan.parameter_oids != oids:
            raise SchemaMoved
        return await session.bulk_change(statement.plan.prepared, is_one_statement=True)

    # The data.

    async def _receive(self) -> _Received:
        """The next data of the client: a slice or more, or all that remain.

        Raises:
            SqlError: 57014 if the client gives up or cancels, or after statement_timeout; 08006 if it has disconnected; 08P01 for a
                message that does not belong to COPY; the reason for which the session or its transaction was ended.
        """
        stream = self._state.stream
        parts: list[bytes] = []
        size = 0
        while size < SLICE_BYTES:
            message = stream.next_message()
            if message is None:
                self._check_end()
                await stream.wait()
                continue
            letter, body = message
            self._state.receive_within(letter)
            match letter:
                case b"d":
                    parts.append(body)
                    size += len(body)
                case b"c":
                    return _Received(b"".join(parts), True)
                case b"f":
                    raise SqlError("57014", f"COPY from stdin failed: {wire.copy_fail_reason(body)}")
                case b"S" | b"H":
                    pass  # Clients of the extended protocol send Sync together with Execute. PostgreSQL also ignores it here.
                case b"X":
                    raise _disconnected()
                case _:
                    raise SqlError("08P01", f"unexpected message type 0x{letter.hex().upper()} during COPY from stdin")
            if self._state.turn_cost >= TURN_COST:
                await self._state.end_turn()
        self._check_end()
        return _Received(b"".join(parts), False)

    def _check_end(self) -> None:
        """Check that the COPY may go on."""
        state = self._state
        if self._is_timed_out:
            raise _timed_out()
        if state.stream.is_lost:
            raise _disconnected()
        if state.is_cancelled:
            raise SqlError("57014", "canceling statement due to user request")
        state.session.check_prepared(_COPY_FROM)

    @asynccontextmanager
    async def _time_limit(self) -> AsyncIterator[None]:
        """Apply statement_timeout to all of the COPY."""
        state = self._state
        seconds = state.settings.statement_timeout_s
        if seconds <= 0:
            yield
            return

        def end() -> None:
            self._is_timed_out = True
            state.session.cancel()
            state.stream.wake()

        timer = state.clock.call_at(state.clock.monotonic() + seconds, end)
        try:
            yield
        except SqlError as error:
            if self._is_timed_out and error.sqlstate == "57014":
                raise _timed_out() from error
            raise
        finally:
            timer.cancel()


def _change(command: CopyStatement, columns: Sequence[str], key: Sequence[str]) -> str:
    """The statement for each row.

    Args:
        key: the columns of the primary key.

    Raises:
        SqlError: 42P10, the action needs a primary key that the table does not have, or its columns.
    """
    action, table = command.options.action, command.table
    names = ", ".join(map(quote, columns))
    insert = f"INSERT INTO {command.target} ({names}) VALUES ({', '.join(f'${number}' for number in range(1, len(columns) + 1))})"
    if action is CopyAction.INSERT:
        return insert
    if not key:
        raise SqlError("42P10", f'table "{table}" has no primary key, by which COPY could {action.value} rows')
    missing = [name for name in key if name not in columns]
    if missing:
        raise SqlError("42P10", f'column "{missing[0]}" of the primary key of "{table}" is not referenced by COPY')
    others = [name for name in columns if name not in key]
    if action is CopyAction.UPSERT:
        updates = ", ".join(f"{quote(name)} = excluded.{quote(name)}" for name in others)
        return f"{insert} ON CONFLICT ({', '.join(map(quote, key))}) DO {f'UPDATE SET {updates}' if updates else 'NOTHING'}"
    if others:
        raise SqlError("42P10", f'column "{others[0]}" is not part of the primary key of "{table}", by which COPY deletes rows')
    wanted = " AND ".join(f"{quote(name)} = ${number}" for number, name in enumerate(columns, 1))
    return f"DELETE FROM {command.target} WHERE {wanted}"


def _reader(command: CopyStatement, place: CopyPlace, columns: Sequence[str]) -> RowReader:
    match command.options.format:
        case CopyFormat.BINARY:
            return BinaryReader(place, len(columns))
        case CopyFormat.CSV:
            return CsvReader(command.options, place, columns)
        case CopyFormat.TEXT:
            return TextReader(command.options, place, columns)


def _timed_out() -> SqlError:
    return SqlError("57014", "canceling statement due to statement timeout")


def _disconnected() -> SqlError:
    return SqlError("08006", "unexpected EOF on client connection with an open transaction")
