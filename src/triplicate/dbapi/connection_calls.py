"""The session of a connection: its calls pass from the threads of the program to the event loop, one at a time."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from triplicate.dbapi.cursor_types import FIRST_ROWS, Parameters
from triplicate.dbapi.pep249_errors import ProgrammingError, of_database
from triplicate.dbapi.settled_pragmas import settled
from triplicate.dbapi.shared_databases import SharedDatabase, release
from triplicate.errors import TriplicateError
from triplicate.sql import InProcessSession, Row, StartedStatement, StatementKind

Result = TypeVar("Result")

LEGACY_TRANSACTION_CONTROL = -1
"""The value of `autocommit` for which `isolation_level` decides when transactions begin."""
ISOLATION_LEVELS = ("", "DEFERRED", "IMMEDIATE", "EXCLUSIVE")


class ConnectionCalls:
    """One session, with the checks of `sqlite3` on threads, and the rules by which transactions begin.

    Args:
        shared: the database; released by `close`.
        checks_thread: whether threads other than this one are refused.
    """

    def __init__(self, shared: SharedDatabase, isolation_level: str | None, autocommit: bool | int, *, checks_thread: bool) -> None:
        self.isolation_level = checked_level(isolation_level)
        self.autocommit = checked_autocommit(autocommit)
        self.total_changes = 0
        self.left_over: deque[StartedStatement] = deque()
        """Statements of cursors that were dropped without being closed."""
        self._shared = shared
        self._thread = threading.get_ident() if checks_thread else None
        self._process = os.getpid()
        self._lock = threading.RLock()
        """Threads that share the connection run one statement at a time."""
        self._session = self.call(self._open())
        self.is_closed = False

    async def _open(self) -> InProcessSession:
        session = await self._shared.opened.new_session("triplicate.dbapi")
        if self.autocommit is False:
            await session.start("BEGIN")
        return session

    @property
    def place(self) -> str:
        """Where the database is."""
        return self._shared.key[0]

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return not self.is_closed and self._session.in_transaction

    @property
    def is_legacy(self) -> bool:
        """Whether `isolation_level` decides when transactions begin."""
        return self.autocommit == LEGACY_TRANSACTION_CONTROL

    @property
    def is_of_this_process(self) -> bool:
        """Whether there was no fork since."""
        return os.getpid() == self._process

    def check(self) -> None:
        """Raises ProgrammingError: the connection is closed, or used in another thread or process than it was made in."""
        if not self.is_of_this_process:
            raise ProgrammingError(f"the connection was made in process {self._process}, before a fork; connect in this one")
        if self.is_closed:
            raise ProgrammingError("the connection was closed; connect again")
        if self._thread is not None and threading.get_ident() != self._thread:
            raise ProgrammingError(
                f"the connection was made in thread {self._thread} and is used in thread {threading.get_ident()}: make one for each "
                "thread, or connect with check_same_thread=False"
            )

    def run(self, work: Callable[[InProcessSession], Coroutine[Any, Any, Result]]) -> Result:
        """Run a coroutine that uses the session, after the ends of statements that were left over. Raises as `check` and `call`."""
        self.check()

        async def run() -> Result:
            while self.left_over:
                await self.left_over.popleft().close()
            return await work(self._session)

        with self._lock:
            return self.call(run())

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop. Raises Error: in the place of an error of the database."""
        try:
            return self._shared.loop.call(work)
        except TriplicateError as error:
            raise of_database(error) from error

    def interrupt(self) -> None:
        """Interrupt the running statement. From any thread."""
        self._shared.loop.run(self._session.interrupt)

    def dsn(self) -> str:
        """See `EmbeddedDatabase.dsn`."""
        return self.call(self._shared.opened.dsn())

    # Statements.

    def start(self, sql: str, parameters: Parameters) -> tuple[StartedStatement, list[Row]]:
        """Run a statement and fetch its first rows. Fewer than `FIRST_ROWS` are all."""

        instead = settled(sql)
        text = sql if instead is None else instead

        async def start(session: InProcessSession) -> tuple[StartedStatement, list[Row]]:
            await self._begin_for(session, text)
            started = await session.start(text, parameters)
            self.total_changes += max(0, started.rows_changed)
            return started, await started.fetch(FIRST_ROWS)

        return self.run(start)

    def start_many(self, sql: str, rows: list[Parameters]) -> int:
        """Run a change for each row of parameters; the number of rows changed."""

        async def start(session: InProcessSession) -> int:
            await self._begin_for(session, sql)
            changed = await session.execute_many(sql, rows)
            self.total_changes += changed
            return changed

        return self.run(start)

    def run_script(self, script: str) -> None:
        """Run the statements of a text, after a commit where `isolation_level` decides."""

        async def start(session: InProcessSession) -> None:
            if self.is_legacy and session.in_transaction:
                await session.start("COMMIT")
            await session.execute_script(script)

        self.run(start)

    async def _begin_for(self, session: InProcessSession, sql: str) -> None:
        """Begin a transaction, if a change begins one and this is a change."""
        if not self.is_legacy or self.isolation_level is None or session.in_transaction:
            return
        if await session.kind_of(sql) is StatementKind.WRITE:
            await session.start(f"BEGIN {self.isolation_level}")

    # Transactions.

    def begin(self) -> None:
        """Begin a transaction if none is open."""

        async def begin(session: InProcessSession) -> None:
            if not session.in_transaction:
                await session.start("BEGIN")

        self.run(begin)

    def commit(self) -> None:
        """Commit the open transaction, if there is one."""

        async def commit(session: InProcessSession) -> None:
            if session.in_transaction:
                await session.start("COMMIT")

        self.run(commit)

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one."""
        self.run(InProcessSession.roll_back)

    # The end.

    def close(self) -> None:
        """Roll back, end the session, and release the database. Idempotent."""
        if self.is_closed:
            return
        self.check()
        with self._lock:
            self.is_closed = True
            try:
                self.call(self._session.close())
            finally:
                release(self._shared)

    def abandon(self) -> None:
        """End the session without waiting, from a finalizer. The node stays for the next connection, and ends with the process."""
        self.is_closed = True
        self._shared.users -= 1
        self._shared.loop.post(self._session.close())


def checked_level(level: str | None) -> str | None:
    """Raises ProgrammingError: there is no such level."""
    if level is not None and (not isinstance(level, str) or level.upper() not in ISOLATION_LEVELS):
        raise ProgrammingError(f"isolation_level is None or one of {', '.join(map(repr, ISOLATION_LEVELS))}, not {level!r}")
    return None if level is None else level.upper()


def checked_autocommit(value: bool | int) -> bool | int:
    """Raises ProgrammingError: it is no value of `autocommit`."""
    if value is not True and value is not False and value != LEGACY_TRANSACTION_CONTROL:
        raise ProgrammingError(f"autocommit is True, False or LEGACY_TRANSACTION_CONTROL, not {value!r}")
    return value
