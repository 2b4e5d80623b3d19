"""A leader's and a follower's copy whose clock a test sets, and files as the first format kept them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import apsw

from tests.property.rowlog_workload import Pair
from triplicate.errors import SqlError
from triplicate.sql import decode_header
from triplicate.sql.core.records import encode_header
from triplicate.sql.executor.statement_batches import AutocommitRequest, AutocommitResult
from triplicate.sql.executor.transaction_functions import TransactionIds, open_applier_connection
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.sqlite_file import open_store
from triplicate.sql.storage.transaction_history import RequestLimits

START_MS = 1_764_000_000_000
DAY_MS = 24 * 3600 * 1000

FORMAT_1 = """
drop view triplicate_request_horizon;
create temp table t as select first_id, last_id, position from triplicate_transactions;
create temp table r as select request_id, transaction_id, position, results from triplicate_requests;
drop table triplicate_transactions; drop table triplicate_requests; drop table triplicate_kept; drop table triplicate_forgotten;
create table triplicate_transactions(first_id integer primary key, last_id integer not null, position integer not null);
create index triplicate_transactions_position on triplicate_transactions(position);
create table triplicate_requests(
    request_id text primary key, transaction_id integer not null, position integer not null, results blob not null
) without rowid;
create index triplicate_requests_position on triplicate_requests(position);
insert into triplicate_transactions select * from temp.t;
insert into triplicate_requests select * from temp.r;
update triplicate_state set format = 1
"""


class TimedPair(Pair):
    """A pair of copies over one log, under a clock that a test sets. Every batch sent is noted in `batches`."""

    def __init__(self, folder: Path, limits: RequestLimits | None = None) -> None:
        self.now_ms = START_MS
        super().__init__(folder, lambda: self.now_ms * 1000, limits)
        self.batches: list[LogBatch] = []

    def pay(self, request_id: str = "", count: int = 1) -> list[AutocommitResult]:
        """Insert a payment under one request id, `count` times in one batch."""
        return self.run("insert into t(v) values('payment') returning id", request_id, count)

    def run(self, sql: str, request_id: str = "", count: int = 1) -> list[AutocommitResult]:
        pending = self.writer.run_batch([AutocommitRequest(self.gate.examine(sql), (), request_id) for _ in range(count)])
        start = self.writer.position
        self.send(pending)
        if pending.records:
            self.batches.append(LogBatch(start, pending.records, pending.preamble, 1))
        return list(pending.answers)

    def refusal(self, request_id: str) -> SqlError:
        """The error that a payment under this id meets."""
        (answer,) = self.pay(request_id)
        assert answer.error is not None
        return answer.error

    def count(self) -> list[tuple[object, ...]]:
        """Payments, on the leader and on the follower."""
        return [connection.execute("select count(*) from t").fetchall()[0] for connection in (self.reader, self.follower)]

    def lead_on_the_follower(self, epoch: int) -> WriterConnection:
        """A writer of the next epoch on the follower's copy, as after a take-over."""
        self.follower.close(True)
        return WriterConnection(self.paths[1], TransactionIds(epoch), wall_us=lambda: self.now_ms * 1000)


def without_time(batch: LogBatch) -> LogBatch:
    """A batch as a release of before writes it: with a header of version 1."""
    assert batch.preamble is not None
    return replace(batch, preamble=encode_header(replace(decode_header(batch.preamble), time_ms=0, forget_before_ms=0)))


def replay(path: str, batches: Sequence[LogBatch]) -> None:
    """Apply batches, each in a transaction of its own, to a copy, which is made where it is missing."""
    open_store(path, b"d" * 16)
    connection = open_applier_connection(path)
    applier = Applier(connection)
    for batch in batches:
        follow(applier, [batch])
    connection.close(True)


def to_format_1(path: str) -> None:
    """Give a copy that has applied batches of the first format alone the tables of that format."""
    connection = apsw.Connection(path)
    connection.execute(FORMAT_1).fetchall()
    connection.close(True)
