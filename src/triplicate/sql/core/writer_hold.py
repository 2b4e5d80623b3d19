"""The life of one transaction that holds the writer: when it may run, how it ends, and what a limit does to it. Pure.

It runs one statement at a time. It ends once, by COMMIT, by ROLLBACK, by SQLite, which may end it with a statement, or by a limit. A
limit that is reached while a statement runs interrupts the statement, and the transaction ends when the statement has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from triplicate.errors import SqlError
from triplicate.sql.core.statement_results import StatementResult


class Ending(Enum):
    """How a transaction ends."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    LOST = "lost"
    """SQLite has rolled it back already, or the leadership has ended."""
    EXPIRED = "expired"
    """A limit was reached."""


@dataclass(frozen=True, slots=True)
class EndRequest:
    """The request to end a transaction."""

    ending: Ending
    results: tuple[StatementResult, ...] = ()
    """Of a commit: the results of its statements."""
    request_id: str = ""
    """Of a commit: the client's id of the transaction, empty for none."""


class WriterHold:
    """The state of one such transaction. Each step that ends it returns the request once, and None afterwards."""

    def __init__(self) -> None:
        self._is_running = False
        self._expired: SqlError | None = None
        self._end: EndRequest | None = None

    @property
    def is_running(self) -> bool:
        """Whether a statement runs."""
        return self._is_running

    @property
    def is_over(self) -> bool:
        return self._end is not None

    @property
    def expired(self) -> SqlError | None:
        """The limit that ended it, or that will when its statement has ended; None where there is none."""
        return self._expired

    def check(self) -> None:
        """Raises SqlError when it has ended: the error of the limit that ended it, else 25P02."""
        if self._end is not None:
            raise self._expired or SqlError("25P02", "the transaction has ended")

    def start(self) -> None:
        """A statement starts.

        Raises:
            SqlError: as `check`.
        """
        self.check()
        assert not self._is_running, "a transaction runs one statement at a time"
        self._is_running = True

    def finish(self) -> EndRequest | None:
        """The statement has ended. A limit that was reached meanwhile ends the transaction."""
        self._is_running = False
        return self.end(EndRequest(Ending.EXPIRED)) if self._expired is not None else None

    def expire(self, reason: SqlError) -> EndRequest | None:
        """A limit was reached. While a statement runs the caller interrupts it, and the transaction ends with `finish`."""
        self._expired = reason
        return None if self._is_running else self.end(EndRequest(Ending.EXPIRED))

    def end(self, request: EndRequest) -> EndRequest | None:
        """End it, unless it has ended."""
        if self._end is not None:
            return None
        self._end = request
        return request
