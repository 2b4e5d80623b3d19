"""Cursors of PEP 249, with the habits of `sqlite3`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol, Self

from triplicate.dbapi.connection_calls import ConnectionCalls
from triplicate.dbapi.cursor_types import FIRST_ROWS, FURTHER_ROWS, Description, Parameters
from triplicate.dbapi.pep249_errors import ProgrammingError
from triplicate.dbapi.pep249_values import adapted, converter_of
from triplicate.sql import StartedStatement

PARSE_DECLTYPES = 1
PARSE_COLNAMES = 2


class CursorOwner(Protocol):
    """The part of a connection that its cursors use."""

    row_factory: Callable[..., Any] | None
    text_factory: Callable[[bytes], Any]
    detect_types: int
    calls: ConnectionCalls


class DatabaseCursor:
    """Runs statements of a `Connection` and fetches their rows."""

    def __init__(self, connection: CursorOwner) -> None:
        self.connection = connection
        self.arraysize = 1
        self.row_factory: Callable[..., Any] | None = connection.row_factory
        self.rowcount = -1
        """Rows that the last statement inserted, updated or deleted; -1 for others."""
        self.lastrowid: int | None = None
        """The rowid of the last inserted row."""
        self.description: tuple[Description, ...] | None = None
        """Seven fields for each column of the result: its name, the declared type if it is of a table, and five times None."""
        self._statement: StartedStatement | None = None
        self._rows: deque[tuple[Any, ...]] = deque()
        self._converters: list[Callable[[bytes], Any] | None] | None = None
        self._is_closed = False

    # Statements.

    def execute(self, sql: str, parameters: Parameters = (), /) -> Self:
        """Run one statement.

        Args:
            parameters: values by place for ``?``, or by name for ``:name``.
        """
        self._begin(sql)
        started, rows = self.connection.calls.start(sql, adapted(parameters))
        self.rowcount = started.rows_changed
        if started.last_row_id is not None:
            self.lastrowid = started.last_row_id
        self._describe(started)
        self._rows.extend(rows)
        if len(rows) == FIRST_ROWS:
            self._statement = started
        return self

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Self:
        """Run one change for each row of parameters. If a run fails, nothing of the call stays."""
        self._begin(sql)
        self.rowcount = self.connection.calls.start_many(sql, [adapted(each) for each in parameters])
        return self

    def executescript(self, script: str, /) -> Self:
        """Commit an open transaction, except with `autocommit` False, and run the statements of a text."""
        self._begin(script)
        self.connection.calls.run_script(script)
        return self

    def _begin(self, sql: str) -> None:
        self._check()
        if not isinstance(sql, str):
            raise TypeError(f"a statement is a str, not {type(sql).__name__}")
        self._end_statement()
        self.rowcount, self.description = -1, None

    def _describe(self, started: StartedStatement) -> None:
        columns = started.columns
        if not columns:
            return
        detects = self.connection.detect_types
        names = [column.name for column in columns]
        self._converters = None
        if detects:
            of_names = [converter_of(name.partition("[")[2].partition("]")[0]) if detects & PARSE_COLNAMES else None for name in names]
            of_types = [converter_of(column.declared_type or "") if detects & PARSE_DECLTYPES else None for column in columns]
            self._converters = [name or declared for name, declared in zip(of_names, of_types, strict=True)]
            if detects & PARSE_COLNAMES:
                names = [name.partition(" [")[0] for name in names]
        self.description = tuple(
            (name, column.declared_type, None, None, None, None, None) for name, column in zip(names, columns, strict=True)
        )

    # Rows.

    def fetchone(self) -> Any:
        """The next row; None at the end, and where the last statement has no rows."""
        self._check()
        if not self._rows:
            self._fetch_more(FURTHER_ROWS)
        return self._made(self._rows.popleft()) if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next rows, at most `size`, by default `arraysize`."""
        self._check()
        wanted = self.arraysize if size is None else size
        if wanted < 0:
            raise ProgrammingError(f"a number of rows is not negative: {wanted}")
        while len(self._rows) < wanted and self._statement is not None:
            self._fetch_more(max(wanted - len(self._rows), FURTHER_ROWS))
        return [self._made(self._rows.popleft()) for _ in range(min(wanted, len(self._rows)))]

    def fetchall(self) -> list[Any]:
        """All rows that were not fetched yet."""
        self._check()
        while self._statement is not None:
            self._fetch_more(FURTHER_ROWS)
        rows, self._rows = self._rows, deque()
        return [self._made(row) for row in rows]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def _fetch_more(self, count: int) -> None:
        statement = self._statement
        if statement is None:
            return
        try:
            rows = self.connection.calls.run(lambda _: statement.fetch(count))
        except BaseException:
            self._statement = None
            raise
        self._rows.extend(rows)
        if len(rows) < count:
            self._statement = None  # A statement that was read to its end has closed itself.

    def _made(self, row: tuple[Any, ...]) -> Any:
        text_factory = self.connection.text_factory
        if text_factory is not str:
            row = tuple(text_factory(value.encode()) if isinstance(value, str) else value for value in row)
        if self._converters is not None:
            row = tuple(
                value if convert is None or value is None else convert(_as_bytes(value))
                for value, convert in zip(row, self._converters, strict=True)
            )
        return row if self.row_factory is None else self.row_factory(self, row)

    # The end, and what PEP 249 wants.

    def setinputsizes(self, sizes: object, /) -> None:
        """No effect: SQLite's values have sizes of their own."""

    def setoutputsize(self, size: object, column: object = None, /) -> None:
        """No effect, likewise."""

    def close(self) -> None:
        """End the statement; the cursor can be used no more. Idempotent."""
        if not self._is_closed:
            self.connection.calls.check()
            self._is_closed = True
            self._end_statement()

    def _end_statement(self) -> None:
        self._rows.clear()
        statement, self._statement = self._statement, None
        if statement is not None and not self.connection.calls.is_closed:
            self.connection.calls.run(lambda _: statement.close())

    def _check(self) -> None:
        if self._is_closed:
            raise ProgrammingError("the cursor was closed; make another")
        self.connection.calls.check()

    def __del__(self) -> None:
        # The statement holds a snapshot. It is closed with the connection's next statement, since this may be any thread.
        statement = self.__dict__.get("_statement")
        if statement is not None:
            self.connection.calls.left_over.append(statement)


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
