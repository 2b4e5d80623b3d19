"""Results of a transaction as they are stored under its request id, and as a repeat of the request reads them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.statement_results import StatementResult, encode_results

KEPT_ROWS_BYTES = 64 * 1024
"""Upper bound on the encoded results of one request that are stored with their rows."""


def storable_results(results: Sequence[StatementResult], *, with_rows: bool = True) -> tuple[StatementResult, ...]:
    """Results as they are stored. Rows beyond a bound are left out, and marked as left out.

    Args:
        with_rows: False where the database has no room for rows.
    """
    if with_rows and len(encode_results(results)) <= KEPT_ROWS_BYTES:
        return tuple(results)
    return tuple(StatementResult(result.rows_affected, (), bool(result.rows)) for result in results)


def repeated_result(stored: Sequence[StatementResult], index: int) -> StatementResult:
    """The stored result of the statement at this index; an empty result for a statement beyond the stored ones.

    Raises:
        SqlError: 55000, the rows were too many to keep.
    """
    if index >= len(stored):
        return StatementResult(0)
    result = stored[index]
    if result.rows_dropped:
        raise SqlError("55000", "this request has run before, but the rows it returned were too many to keep")
    return result
