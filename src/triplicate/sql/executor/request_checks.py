"""The stored results of request ids, as a writing transaction uses them."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from triplicate.sql.core.request_results import storable_results
from triplicate.sql.core.statement_results import StatementResult
from triplicate.sql.storage.transaction_history import (
    HistoryTotals,
    RequestLimits,
    StoredResult,
    check_request,
    read_history,
    stored_result,
)


class RequestChecks:
    """Checks request ids on the writing connection. The totals of the history are read once in a transaction, when they are needed."""

    def __init__(self, connection: apsw.Connection, limits: RequestLimits) -> None:
        self._connection = connection
        self._limits = limits
        self._totals: HistoryTotals | None = None

    def begin(self) -> None:
        """A transaction begins."""
        self._totals = None

    def find(self, request_id: str) -> StoredResult | None:
        """The results stored under a request id, or None."""
        return stored_result(self._connection, request_id)

    def check(self, request_id: str, time_ms: int, waiting: int = 0) -> None:
        """Refuse a request without stored results that may have run before, or whose results could not be stored.

        Args:
            time_ms: the log's time now, in ms since the epoch.
            waiting: requests of the same batch that will be stored besides.

        Raises:
            SqlError: see `check_request`.
        """
        check_request(self._connection, request_id, self._history(), time_ms, self._limits, waiting)

    def storable(self, results: Sequence[StatementResult]) -> tuple[StatementResult, ...]:
        """Results as they are stored; without their rows where the history has reached its size."""
        return storable_results(results, with_rows=self._history().bytes < self._limits.bytes)

    def _history(self) -> HistoryTotals:
        self._totals = self._totals or read_history(self._connection)
        return self._totals
