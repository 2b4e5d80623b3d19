"""Interrupted statements: what the connection does before and after a statement is not interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.rowlog_workload import Pair
from tests.unit.sql.definition_rig import same, send
from triplicate.errors import SqlError
from triplicate.sql.executor import writer_connection
from triplicate.sql.executor.interrupts import StatementLimit, StopFlag
from triplicate.sql.executor.statement_batches import AutocommitRequest

LONG = "create table filled(a int) as insert into filled with recursive r(n) as (select 1 union all select n + 1 from r) select n from r"
CANCELLED = SqlError("57014", "canceling statement due to user request")


class LateStop(StopFlag):
    """Set once the statement has begun."""

    def __init__(self) -> None:
        self._asked = 0

    @property
    def reason(self) -> SqlError | None:  # type: ignore[override]
        self._asked += 1
        return CANCELLED if self._asked > 1 else None


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Its schema takes more steps to read than SQLite makes between two looks at the flag."""
    monkeypatch.setattr(writer_connection, "_PROGRESS_STEPS", 20)
    made = Pair(tmp_path)
    send(made, "create table counted(id integer primary key autoincrement)", "create table t(a int primary key, b text)")
    yield made
    made.close()


def test_a_request_that_is_interrupted_after_it_changed_the_schema_fails_alone(pair: Pair) -> None:
    change = AutocommitRequest(pair.gate.examine("insert into t(a) values (1)"), ())
    requests = [AutocommitRequest(pair.gate.examine(LONG), (), stop=LateStop()), change]
    pending = pair.writer.run_batch(requests)
    assert [answer.error and answer.error.sqlstate for answer in pending.answers] == ["57014", None]
    pair.send(pending)
    send(pair, "create table filled(a int)", "insert into filled values (2)")
    same(pair)


def test_a_statement_of_a_transaction_that_is_interrupted_is_undone_whole(pair: Pair) -> None:
    pair.writer.begin()
    pair.writer.limit.stop = LateStop()
    assert pair.writer.limit.stop.reason is None
    with pytest.raises(SqlError) as failed:
        pair.writer.run(pair.gate.examine(LONG), ())
    assert failed.value.sqlstate == "57014"
    pair.writer.limit.clear()
    pair.writer.run(pair.gate.examine("create table filled(a int)"), ())
    pair.send(pair.writer.finish((), ""))
    same(pair)


def test_nothing_is_interrupted_while_the_limit_is_paused() -> None:
    now = 0.0
    limit = StatementLimit(lambda: now, 10)
    stop = StopFlag()
    limit.start(stop)
    now = 11.0
    with limit.paused():
        assert not limit.is_reached
    assert limit.is_reached
    assert stop.reason is not None
