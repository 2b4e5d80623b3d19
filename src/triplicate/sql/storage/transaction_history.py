"""The history of past transactions: results by request id, and the ids of committed transactions.

The history depends on the log alone, so all copies have the same history. Its time is the log's time: the header of each batch contains
the leader's time, which never decreases. Batches of the first format have no time (0); their age is a number of log records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.request_ids import fingerprint, issued_ms
from triplicate.sql.core.statement_results import StatementResult, decode_results
from triplicate.sql.core.transaction_numbers import transaction_id

KEPT_POSITIONS = 200_000
"""The history of batches without a time is kept for at least this number of log records."""
_PRUNE_STEP = 1024
KEPT_RUNS = 1_000_000
"""Upper bound on the stored runs of transaction ids. Beyond it the oldest runs are deleted, and the status of their ids is unknown."""
DELETE_AT_ONCE = 1000
"""Upper bound on the old results that one batch deletes, to not delay later batches. A batch with many requests deletes more."""
_FORGET_EVERY_MS = 1000
"""Batches without a request delete old history at most once in this span of the log's time, ms."""
_RUN_MS = 60_000
"""Consecutive transaction ids from the same span of this length, ms, form one run."""
AHEAD_MS = 3_600_000
"""The time in a request id may be ahead of the log's time by this, ms, because clients' clocks differ."""

TABLES = """
create table triplicate_transactions(
    first_id integer primary key, last_id integer not null, position integer not null, time_ms integer not null
);
create index triplicate_transactions_time on triplicate_transactions(time_ms);
create table triplicate_requests(
    request_id text primary key, transaction_id integer not null, position integer not null, results blob not null,
    time_ms integer not null
) without rowid;
create index triplicate_requests_time on triplicate_requests(time_ms);
create table triplicate_forgotten(fingerprint integer primary key);
create table triplicate_kept(
    id integer primary key check (id = 1), time_ms integer not null, forgotten_ms integer not null, requests integer not null,
    request_bytes integer not null, undated integer not null, runs integer not null
);
insert into triplicate_kept values(1, 0, 0, 0, 0, 0, 0);
create view triplicate_request_horizon as
select k.requests as requests, k.request_bytes as bytes, k.undated as undated,
    strftime('%Y-%m-%dT%H:%M:%fZ', (select min(time_ms) from triplicate_requests) / 1000.0, 'unixepoch') as oldest_kept,
    strftime('%Y-%m-%dT%H:%M:%fZ', nullif(k.forgotten_ms, 0) / 1000.0, 'unixepoch') as refused_through,
    strftime('%Y-%m-%dT%H:%M:%fZ', nullif(k.time_ms, 0) / 1000.0, 'unixepoch') as log_time
from triplicate_kept k;
"""
_FROM_FORMAT_1 = (
    # The tables are created again, not altered. So every copy has the same schema text, and SQLite does not rewrite views on them.
    "create temp table old_transactions as select first_id, last_id, position from main.triplicate_transactions",
    "create temp table old_requests as select request_id, transaction_id, position, results from main.triplicate_requests",
    "drop table main.triplicate_transactions",
    "drop table main.triplicate_requests",
    TABLES,
    "insert into triplicate_transactions select *, 0 from temp.old_transactions",
    "insert into triplicate_requests select *, 0 from temp.old_requests",
    "drop table temp.old_transactions",
    "drop table temp.old_requests",
)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The results of a request that has committed."""

    transaction_id: int
    results: tuple[StatementResult, ...]


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The leader's limits on the history. Followers delete what the log says, independently of their own limits."""

    keep_ms: int = 24 * 3600 * 1000
    """How long results are kept."""
    requests: int = 10_000_000
    """Upper bound on the requests whose results are kept."""
    bytes: int = 4 * 1024**3
    """Beyond this size, results are stored without their rows."""
    undated: int = 10_000_000
    """Upper bound on request ids without a time over the life of a database, because the fingerprint of each is kept permanently."""


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """The entry of a batch in the internal tables, the same on the leader and on followers."""

    epoch: int
    batch: int
    start: int
    """Offset of its first record."""
    end: int
    """Offset after its last record."""
    schema_version: int
    numbers: Sequence[int]
    """Numbers of the transactions, which are unique within the epoch."""
    requests: Sequence[tuple[str, int, bytes]]
    """(request id, transaction number, encoded results) of each."""
    time_ms: int = 0
    """The log's time; 0 in a batch of the first format."""
    forget_before_ms: int = 0
    """Results and ids from before this time are deleted with this batch."""


@dataclass(frozen=True, slots=True)
class HistoryTotals:
    """The size of the history, and the time up to which it has been deleted."""

    time_ms: int
    forgotten_ms: int
    """The results of a request with this time or an earlier one may have been deleted."""
    requests: int
    bytes: int
    undated: int
    """Request ids without a time: those with results, and those with only a fingerprint."""
    runs: int
    """Stored runs of transaction ids."""


def _query(connection: apsw.Connection, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    return connection.execute(sql, parameters).fetchall()


def upgrade_from_format_1(connection: apsw.Connection) -> None:
    """Upgrade the tables of a file of the first format. A transaction must be open."""
    for sql in _FROM_FORMAT_1:
        _query(connection, sql)
    connection.execute("update triplicate_kept set runs = (select count(*) from triplicate_transactions)")


def read_history(connection: apsw.Connection) -> HistoryTotals:
    """The row of ``triplicate_kept``."""
    (row,) = _query(connection, "select time_ms, forgotten_ms, requests, request_bytes, undated, runs from triplicate_kept")
    return HistoryTotals(*row)


# Writing.


def record_history(connection: apsw.Connection, batch: CommitRecord) -> None:
    """Store the ids and results of a batch and delete old ones, in the open transaction that holds its changes."""
    if not batch.requests and _advance_time(connection, batch.time_ms):
        runs = _record_runs(connection, batch, batch.time_ms)
        if runs:
            connection.execute("update triplicate_kept set runs = runs + ?", (runs,))
        return
    totals = read_history(connection)
    if batch.time_ms and not totals.time_ms:
        _begin_time(connection, batch.time_ms)
    time_ms = max(totals.time_ms, batch.time_ms)
    runs = _record_runs(connection, batch, time_ms)
    _record_requests(connection, batch, time_ms, runs)
    if time_ms == 0:
        if batch.start // _PRUNE_STEP != batch.end // _PRUNE_STEP:
            _delete_by_position(connection, batch.end - KEPT_POSITIONS)
        return
    if not batch.requests and time_ms // _FORGET_EVERY_MS == totals.time_ms // _FORGET_EVERY_MS:
        return
    _delete_runs(connection, batch.forget_before_ms, totals.runs + runs)
    _delete_requests(connection, batch.forget_before_ms, max(DELETE_AT_ONCE, 2 * len(batch.requests)))


def _advance_time(connection: apsw.Connection, time_ms: int) -> bool:
    """Set the log's time to that of a batch within the same span of `_FORGET_EVERY_MS`; whether the batch is in it.

    Most batches are. A batch without requests stores nothing else but its ids, and deletes nothing.
    """
    connection.execute(
        "update triplicate_kept set time_ms = ?1 where time_ms > 0 and time_ms <= ?1 and time_ms / ?2 = ?1 / ?2",
        (time_ms, _FORGET_EVERY_MS),
    )
    return bool(connection.changes())


def _record_runs(connection: apsw.Connection, batch: CommitRecord, time_ms: int) -> int:
    """Store the batch's transaction ids. Returns the number of runs that were added."""
    added = 0
    for first, last in _runs(batch.numbers):
        first_id, last_id = transaction_id(batch.epoch, first), transaction_id(batch.epoch, last)
        if time_ms:
            connection.execute(
                "update triplicate_transactions set last_id = ?1, position = ?2"
                " where first_id = (select max(first_id) from triplicate_transactions) and last_id = ?3 and time_ms / ?5 = ?4 / ?5",
                (last_id, batch.end, first_id - 1, time_ms, _RUN_MS),
            )
            if connection.changes():
                continue
        connection.execute("insert into triplicate_transactions values(?, ?, ?, ?)", (first_id, last_id, batch.end, time_ms))
        added += 1
    return added


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    ordered = sorted(numbers)
    if len(ordered) == ordered[-1] - ordered[0] + 1:
        return [(ordered[0], ordered[-1])]
    runs: list[tuple[int, int]] = []
    for number in ordered:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _record_requests(connection: apsw.Connection, batch: CommitRecord, time_ms: int, runs: int) -> None:
    connection.executemany(
        "insert or replace into triplicate_requests values(?, ?, ?, ?, ?)",
        [
            (request_id, transaction_id(batch.epoch, number), batch.end, results, _dated_ms(request_id, time_ms))
            for request_id, number, results in batch.requests
        ],
    )
    size = sum(_size(request_id, len(results)) for request_id, _, results in batch.requests)
    undated = sum(issued_ms(request_id) is None for request_id, _, _ in batch.requests)
    if time_ms:  # `_begin_time` counts the results of batches without a time.
        connection.execute(
            "update triplicate_kept set time_ms = ?, requests = requests + ?, request_bytes = request_bytes + ?, undated = undated + ?,"
            " runs = runs + ?",
            (time_ms, len(batch.requests), size, undated, runs),
        )
    else:
        connection.execute("update triplicate_kept set runs = runs + ?", (runs,))


def _size(request_id: str, results: int) -> int:
    return len(request_id.encode()) + results


def _dated_ms(request_id: str, time_ms: int) -> int:
    """The time from which a request's age counts, ms. It is never before the time in the id, so deleted ids are older than stored ones."""
    return max(time_ms, issued_ms(request_id) or 0) if time_ms else 0


def _begin_time(connection: apsw.Connection, time_ms: int) -> None:
    """Give the existing history the time of the first batch that has one."""
    rows = _query(connection, "select request_id, length(results) from triplicate_requests")
    connection.executemany(
        "update triplicate_requests set time_ms = ? where request_id = ?",
        [(_dated_ms(request_id, time_ms), request_id) for request_id, _ in rows],
    )
    connection.execute("update triplicate_transactions set time_ms = ?", (time_ms,))
    # No fingerprint is kept of requests that were deleted by position. If there may be any, ids dated before this batch are refused.
    connection.execute(
        "update triplicate_kept set requests = ?, request_bytes = ?, undated = ?,"
        " forgotten_ms = case when (select pruned_through from triplicate_state) > 0 then ? else 0 end",
        (
            len(rows),
            sum(_size(request_id, size) for request_id, size in rows),
            sum(issued_ms(request_id) is None for request_id, _ in rows),
            time_ms,
        ),
    )


def _delete_by_position(connection: apsw.Connection, before: int) -> None:
    if before <= 0:
        return
    connection.execute(
        "update triplicate_state set pruned_through ="
        " max(pruned_through, coalesce((select max(last_id) from triplicate_transactions where position < ?), 0))",
        (before,),
    )
    connection.execute("delete from triplicate_transactions where position < ?", (before,))
    connection.execute("update triplicate_kept set runs = runs - ?", (connection.changes(),))
    connection.execute("delete from triplicate_requests where position < ?", (before,))


def _delete_runs(connection: apsw.Connection, before_ms: int, runs: int) -> None:
    # A run has the time of its first id. Its last id may be younger by `_RUN_MS`.
    old = _query(
        connection,
        "select first_id, last_id from triplicate_transactions where time_ms < ? order by time_ms limit ?",
        (before_ms - _RUN_MS, DELETE_AT_ONCE),
    )
    beyond = runs - len(old) - KEPT_RUNS
    if beyond > 0:
        old += connection.execute(
            "select first_id, last_id from triplicate_transactions where first_id > ? order by first_id limit ?",
            (max((first for first, _ in old), default=0), min(beyond, DELETE_AT_ONCE)),
        ).fetchall()
    if not old:
        return
    connection.executemany("delete from triplicate_transactions where first_id = ?", [(first,) for first, _ in old])
    connection.execute("update triplicate_kept set runs = runs - ?", (len(old),))
    connection.execute("update triplicate_state set pruned_through = max(pruned_through, ?)", (max(last for _, last in old),))


def _delete_requests(connection: apsw.Connection, before_ms: int, limit: int) -> None:
    old = _query(
        connection,
        "select request_id, length(results), time_ms from triplicate_requests where time_ms < ? order by time_ms, request_id limit ?",
        (before_ms, limit),
    )
    if not old:
        return
    connection.executemany(
        "insert or ignore into triplicate_forgotten values(?)",
        [(fingerprint(request_id),) for request_id, _, _ in old if issued_ms(request_id) is None],
    )
    connection.executemany("delete from triplicate_requests where request_id = ?", [(request_id,) for request_id, _, _ in old])
    connection.execute(
        "update triplicate_kept set requests = requests - ?, request_bytes = request_bytes - ?, forgotten_ms = max(forgotten_ms, ?)",
        (len(old), sum(_size(request_id, size) for request_id, size, _ in old), old[-1][2]),
    )


# Reading.


def stored_result(connection: apsw.Connection, request_id: str) -> StoredResult | None:
    """The results stored under a request id, or None."""
    rows = _query(connection, "select transaction_id, results from triplicate_requests where request_id = ?", (request_id,))
    return StoredResult(rows[0][0], decode_results(rows[0][1])) if rows else None


def check_request(
    connection: apsw.Connection, request_id: str, totals: HistoryTotals, time_ms: int, limits: RequestLimits, pending: int = 0
) -> None:
    """Refuse a request without stored results that may have run before, or whose results cannot be stored.

    Args:
        totals: as the open transaction sees them. time_ms: the log's present time.
        pending: further requests of the same batch that will be stored.

    Raises:
        SqlError: 55000 if the id is older than the history, 22023 if its time is in the future, 53400 if the history is full.
    """
    issued = issued_ms(request_id)
    if issued is None:
        forgotten = _query(connection, "select 1 from triplicate_forgotten where fingerprint = ?", (fingerprint(request_id),))
        if forgotten:
            raise _too_old(connection, request_id)
        if totals.undated + pending >= limits.undated:
            raise SqlError(
                "53400",
                f"this database has had {totals.undated} request ids without a time, and keeps no more of them",
                hint="Use ids that are UUIDs of version 7, or begin with the ms since the epoch and a colon.",
            )
    elif issued <= totals.forgotten_ms:
        raise _too_old(connection, request_id)
    elif issued > time_ms + AHEAD_MS:
        raise SqlError(
            "22023",
            f"the time in request id {request_id!r} is {(issued - time_ms) // 1000} s ahead of the database's time",
            hint="Correct the client's clock.",
        )
    if totals.requests + pending >= limits.requests:
        raise SqlError(
            "53400",
            f"this database keeps the results of {totals.requests} requests, which is its limit",
            detail=f"Each is kept for {limits.keep_ms // 1000} s. {_oldest(connection)}",
            hint="Send fewer requests with an id, or raise node.request_limit.",
        )


def _too_old(connection: apsw.Connection, request_id: str) -> SqlError:
    return SqlError(
        "55000",
        f"request id {request_id!r} is older than the results that are kept; the request may have run before and is not run again",
        detail=_oldest(connection),
        hint="Check in the tables whether it has run. Give a new request a new id, with the present time if the id contains one.",
    )


def _oldest(connection: apsw.Connection) -> str:
    ((oldest, through),) = _query(connection, "select oldest_kept, refused_through from triplicate_request_horizon")
    kept = "No result is kept" if oldest is None else f"The oldest result that is kept is of {oldest}"
    return f"{kept}; ids dated {through} or before are refused." if through is not None else f"{kept}."


def committed(connection: apsw.Connection, identity: int) -> bool | None:
    """Whether a transaction has committed; None if its id may have been deleted from the history.

    Args:
        identity: a 64-bit id of `transaction_id`.
    """
    rows = _query(connection, "select last_id from triplicate_transactions where first_id <= ? order by first_id desc limit 1", (identity,))
    if rows and rows[0][0] >= identity:
        return True
    ((pruned_through,),) = _query(connection, "select pruned_through from triplicate_state")
    return None if identity <= pruned_through else False
