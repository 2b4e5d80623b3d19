"""One client's transaction block as PostgreSQL's clients know it: its status, savepoints and results. Pure.

An error fails the block. A failed block runs nothing until ROLLBACK, or until ROLLBACK TO returns to one of its savepoints. A block
whose transaction has ended under it is doomed: only ROLLBACK of the whole block ends that.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from triplicate.errors import SqlError
from triplicate.sql.core.request_results import repeated_result
from triplicate.sql.core.statement_results import StatementResult


class TransactionStatus(Enum):
    """PostgreSQL's letters for ReadyForQuery."""

    IDLE = "I"
    ACTIVE = "T"
    FAILED = "E"


def failed_transaction() -> SqlError:
    return SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")


class TransactionBlock:
    """The state of one session's transactions, one after the other."""

    def __init__(self) -> None:
        self.status = TransactionStatus.IDLE
        self._is_doomed = False
        self._savepoints: list[tuple[str, int]] = []
        self._saves = 0
        self._results: list[StatementResult] = []
        self._stored: Sequence[StatementResult] | None = None
        self._has_altered = False
        self.request_id = ""
        """The client's id of this transaction, or of the next one where none is open. Empty for none."""
        self.alterations = 0
        """Grows with each schema change in a block, and when schema changes are undone."""

    @property
    def savepoints(self) -> list[str]:
        """Names of the open savepoints, the outermost first."""
        return [name for name, _ in self._savepoints]

    @property
    def results(self) -> Sequence[StatementResult]:
        """Of the block's changes so far."""
        return self._results

    @property
    def is_repeat(self) -> bool:
        """Whether the transaction's request id names one that was committed before, so its statements are answered and do not run."""
        return self._stored is not None

    def begin(self) -> bool:
        """BEGIN. False when a block is open already, which PostgreSQL answers with a warning."""
        if self.status is TransactionStatus.ACTIVE:
            return False
        self.status = TransactionStatus.ACTIVE
        self._results = []
        return True

    def fail(self, *, doomed: bool = False) -> None:
        """A statement of the block failed.

        Args:
            doomed: and the transaction has ended with it.
        """
        if self.status is TransactionStatus.ACTIVE:
            self.status = TransactionStatus.FAILED
        self._is_doomed = self._is_doomed or doomed

    def go_on(self) -> None:
        """The statement that failed the block was undone alone: the block goes on, as one of SQLite does. Not where it is doomed."""
        if self.status is TransactionStatus.FAILED and not self._is_doomed:
            self.status = TransactionStatus.ACTIVE

    def doom(self, *, doomed: bool = True) -> None:
        """The error that follows cannot be undone by ROLLBACK TO, or can."""
        self._is_doomed = doomed

    # Statements.

    def record(self, result: StatementResult, *, altered: bool = False) -> None:
        """A change of the block has succeeded.

        Args:
            altered: it changed the schema.
        """
        self._results.append(result)
        if altered:
            self._has_altered = True
            self.alterations += 1

    def repeat(self, stored: Sequence[StatementResult]) -> None:
        """The block's request id names a committed transaction with these results."""
        self._stored = stored

    def next_repeated(self) -> StatementResult:
        """The stored answer to the block's next change.

        Raises:
            SqlError: 55000, its rows were too many to keep.
        """
        assert self._stored is not None, "only a repeated transaction has stored answers"
        result = repeated_result(self._stored, len(self._results))
        self._results.append(result)
        return result

    # Savepoints.

    def check_savepoints(self) -> None:
        """Raises SqlError 25P02 where no savepoint can mend the block."""
        if self._is_doomed:
            raise failed_transaction()

    def innermost_savepoint(self) -> int:
        """The number of the innermost open savepoint; 0 for none. Later savepoints have higher numbers."""
        return self._savepoints[-1][1] if self._savepoints else 0

    def number_of(self, name: str) -> int:
        """The number of the innermost savepoint of this name. Raises SqlError 3B001 when there is none."""
        if name not in self.savepoints:
            raise SqlError("3B001", f'savepoint "{name}" does not exist')
        return self._savepoints[self._innermost(name)][1]

    def save(self, name: str) -> None:
        """SAVEPOINT."""
        self._saves += 1
        self._savepoints.append((name, self._saves))

    def release(self, name: str) -> None:
        """RELEASE: the innermost savepoint of this name goes, with those within it."""
        self._return_to(self._innermost(name))

    def rollback_to(self, name: str) -> None:
        """ROLLBACK TO: savepoints within the innermost one of this name go, and the block is no longer failed."""
        self._return_to(self._innermost(name) + 1)

    def _innermost(self, name: str) -> int:
        return len(self._savepoints) - 1 - self.savepoints[::-1].index(name)

    def _return_to(self, depth: int) -> None:
        del self._savepoints[depth:]
        # The number of an undone schema version is given out again, for another schema.
        self.alterations += self._has_altered
        self.status = TransactionStatus.ACTIVE

    def end(self) -> None:
        """The transaction has ended, whether it was committed or rolled back."""
        self.alterations += self._has_altered
        self._savepoints, self._results, self._stored = [], [], None
        self._has_altered = self._is_doomed = False
        if self.status is not TransactionStatus.IDLE:
            self.request_id = ""
        self.status = TransactionStatus.IDLE
