"""Single statements that share one entry of the log: requests, their results, and the batch that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.batch_builder import TransactionParts
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.commit_notices import changed_tables
from triplicate.sql.core.interface import CheckRows, Prepared, Row
from triplicate.sql.core.notifications import Notification
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.executor.interrupts import StopFlag, TransactionLost


@dataclass(slots=True)
class StatementOutcome:
    """The rows that a statement returned and the number of rows it changed."""

    rows: list[Row]
    rows_affected: int
    last_row_id: int = field(default=0, compare=False)
    """The rowid that its connection has inserted last, by this statement if that has inserted a row. The stored result of a repeated
    request does not have it."""


@dataclass(slots=True)
class AutocommitRequest:
    """One statement that is a transaction of its own."""

    prepared: Prepared
    parameters: Sequence[Value]
    request_id: str = ""
    stop: StopFlag = field(default_factory=StopFlag)
    schema_version: int | None = None
    """The schema version that it was prepared for; None where it may run in any."""
    check_rows: CheckRows | None = None
    role: str | None = None
    """The role that runs it; None for the administrator."""
    access: AccessRights | None = None
    """The roles and rights by which it may run; None where it may run by any."""
    waits: StatementWaits | None = None
    """Its waits are added to these."""


@dataclass(slots=True)
class AutocommitResult:
    """The result of a request. With neither outcome nor error it did not fit the batch and must be run again in the next."""

    outcome: StatementOutcome | None = None
    error: SqlError | None = None
    number: int | None = None
    """Its transaction number, None where it changed nothing."""

    @property
    def runs_again(self) -> bool:
        """Whether it must be run again in the next batch."""
        return self.outcome is None and self.error is None


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """A batch that ran and waits for the log's acknowledgement."""

    answers: Sequence[AutocommitResult]
    preamble: bytes = b""
    records: Sequence[bytes] = ()
    numbers: Sequence[int] = ()
    """Transaction numbers, one for each record."""
    requests: Sequence[tuple[str, int, bytes]] = ()
    """Request id, transaction number, encoded results."""
    notifications: Sequence[Notification] = ()
    """Those of the transactions. Sessions get them once the batch is committed."""
    parts: TransactionParts | None = None
    """The records, where the batch is one transaction that is larger than an entry: in the place of `preamble` and `records`."""

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.records) if self.parts is None else self.parts.count

    def changed_tables(self) -> list[str]:
        """The names of the tables whose rows it changes."""
        return changed_tables([self.preamble]) if self.parts is None else list(self.parts.tables)


class BatchSize(NamedTuple):
    """Size of the changes of one or several batches."""

    changes: int
    size_bytes: int

    @property
    def is_small(self) -> bool:
        """Whether the commit and the rollback of such changes are short."""
        return self.changes <= 256 and self.size_bytes <= 256 * 1024


NOTHING = BatchSize(0, 0)


class RequestRunner(Protocol):
    """The part of `WriterConnection` that runs a batch."""

    def is_short(self, prepared: Prepared, parameters: Sequence[Value]) -> bool: ...

    def run_request(self, request: AutocommitRequest) -> AutocommitResult: ...

    def begin_again(self, loss: TransactionLost) -> None: ...


class BatchRun:
    """A batch that is being run, inside the open SQLite transaction.

    A request that ends the whole SQLite transaction fails alone: the others run again without it.
    """

    def __init__(self, requests: Sequence[AutocommitRequest]) -> None:
        self.requests = requests
        self.answers: list[AutocommitResult] = []
        """Of the requests that have run, which are the first ones."""
        self._lost: dict[int, SqlError] = {}
        """The errors of requests that have ended the SQLite transaction, by index."""

    @property
    def has_run(self) -> bool:
        """Whether all requests have run."""
        return len(self.answers) == len(self.requests)

    def run_all(self, writer: RequestRunner) -> None:
        """Run the requests that have not run."""
        while not self.has_run:
            self._run_next(writer)

    def run_short(self, writer: RequestRunner, count: int) -> bool:
        """Run the next requests, at most `count`, up to the first that is not short. Returns whether it has reached one that is not."""
        requests, answers = self.requests, self.answers
        while len(answers) < len(requests):
            request = requests[len(answers)]
            if not writer.is_short(request.prepared, request.parameters):
                return True
            if count == 0:
                return False
            self._run_next(writer)
            count -= 1
        return False

    def _run_next(self, writer: RequestRunner) -> None:
        index = len(self.answers)
        if index in self._lost:
            self.answers.append(AutocommitResult(error=self._lost[index]))
            return
        try:
            self.answers.append(writer.run_request(self.requests[index]))
        except TransactionLost as loss:
            self._lost[index] = loss.error
            writer.begin_again(loss)
            self.answers.clear()
