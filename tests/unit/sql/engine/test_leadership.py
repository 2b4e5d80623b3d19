"""Leading, with a log whose acknowledgements the test holds back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from decimal import DivisionByZero, InvalidOperation
from pathlib import Path

import apsw
import pytest

from tests.unit.sql.cluster import run, state_of
from tests.unit.sql.held_log import HeldLog, play, visible
from triplicate.errors import Diverged, LogFenced, SqlError
from triplicate.sql import SqlDatabase
from triplicate.sql.core import batch_builder
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.group_window import FURTHER_STATEMENTS
from triplicate.sql.core.interface import Prepared
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.executor import transaction_functions
from triplicate.sql.executor.change_capture import LateChanges
from triplicate.sql.executor.change_runner import ChangeRunner
from triplicate.sql.executor.statement_batches import AutocommitRequest, StatementOutcome
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection


def test_nothing_is_visible_before_the_log_has_acknowledged_it(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        log.held = True
        writing = asyncio.get_running_loop().create_task(run(session, "insert into t values(2)"))
        await log.sent(1)
        await asyncio.sleep(0.02)
        assert not writing.done()
        assert visible(database) == [1]
        assert database.position == 2
        log.release()
        await writing
        assert visible(database) == [1, 2]
        assert database.position == 3

    play(tmp_path, scene)


def test_a_few_statements_that_wait_during_an_append_share_the_next(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        log.held = True
        sessions = [await database.session() for _ in range(FURTHER_STATEMENTS)]
        prepared = await sessions[0].prepare("insert into t values($1)")
        loop = asyncio.get_running_loop()
        writing = [loop.create_task(sessions[0].start(prepared, (0,)))]
        await log.sent(1)
        writing += [loop.create_task(session.start(prepared, (10,))) for session in sessions[1:]]
        await asyncio.sleep(0.01)
        entries = log.entries
        log.release()
        await log.sent(1)
        log.release()
        for task in writing:
            assert (await task).rows_affected == 1
        assert log.entries == entries + 1

    play(tmp_path, scene)


def test_a_read_waits_for_an_append_sent_after_it_arrived(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        early, late, later = [await database.session() for _ in range(3)]
        prepared = await early.prepare("select a from t")
        log.held = True
        loop = asyncio.get_running_loop()
        noops = log.noops
        first = loop.create_task(early.start(prepared, ()))
        await log.sent(1)
        others = [loop.create_task(session.start(prepared, ())) for session in (late, later)]
        await asyncio.sleep(0.01)
        log.release()
        await first
        await log.sent(1)
        assert not any(task.done() for task in others)
        log.release()
        for task in others:
            await task
        assert log.noops == noops + 2

    play(tmp_path, scene)


def test_a_read_rides_on_a_batch_that_is_sent_after_it(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        one, two, writer = [await database.session() for _ in range(3)]
        prepared = await one.prepare("select a from t")
        insert = await writer.prepare("insert into t values(2)")
        log.held = True
        loop = asyncio.get_running_loop()
        first = loop.create_task(one.start(prepared, ()))
        await log.sent(1)
        riding = loop.create_task(two.start(prepared, ()))
        await asyncio.sleep(0.01)
        writing = loop.create_task(writer.start(insert, ()))
        await log.sent(2)
        noops = log.noops
        log.release()
        for task in (first, riding, writing):
            await task
        assert log.noops == noops

    play(tmp_path, scene)


def test_a_failed_append_gives_each_client_the_known_outcome(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        changing, unchanging, queued, reading, holding = [await database.session() for _ in range(5)]
        log.held = True
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(state_of(run(changing, "insert into t values(2)")))]
        await log.sent(1)
        tasks += [
            loop.create_task(state_of(run(queued, "insert into t values(3)"))),
            loop.create_task(state_of(run(unchanging, "delete from t where a = 99"))),
            loop.create_task(state_of(run(reading, "select a from t"))),
            loop.create_task(state_of(run(holding, "begin immediate"))),
        ]
        await log.sent(2)
        log.release(LogFenced("another leads"))
        assert [await task for task in tasks] == ["08007", "57P01", "57P01", "57P01", "57P01"]
        for session in (changing, unchanging, queued, reading, holding):
            assert (await asyncio.wait_for(session.ended, 5)).sqlstate == "57P01"
        assert not database.is_leader
        assert visible(database) == [1]

    play(tmp_path, scene)


def test_no_client_learns_of_an_unknown_outcome_before_the_lead_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submit, roll_back, may_roll_back = Leadership.submit, WriterConnection.rollback, threading.Event()
    leads_at_answers: list[bool] = []

    def roll_back_late(writer: WriterConnection) -> None:
        assert may_roll_back.wait(30)
        roll_back(writer)

    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        def watched(leadership: Leadership, request: AutocommitRequest) -> asyncio.Future[StatementOutcome]:
            answer = submit(leadership, request)
            answer.add_done_callback(lambda _: leads_at_answers.append(database.is_leader))
            return answer

        monkeypatch.setattr(Leadership, "submit", watched)
        monkeypatch.setattr(WriterConnection, "rollback", roll_back_late)
        session = await database.session()
        log.held = True
        change = asyncio.get_running_loop().create_task(state_of(run(session, "insert into t values(2)")))
        await log.sent(1)
        leading = next(task for task in asyncio.all_tasks() if task.get_name() == "leading")
        log.release(LogFenced("another leads"))
        assert await change == "08007"
        assert leads_at_answers == [False]
        # It connects again while the writer is rolled back, and finds a follower, which does not end its session.
        again = await database.session()
        assert await state_of(run(again, "insert into t values(3)")) == "25006"
        may_roll_back.set()
        with pytest.raises(LogFenced):
            await leading
        assert not again.ended.done()

    play(tmp_path, scene)


def test_an_unknown_outcome_is_in_progress_until_recovery_has_decided(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        await run(session, "begin")
        identity = (await run(session, "select pg_current_xact_id()"))[0][0]
        await run(session, "insert into t values(2)")
        log.held = True
        commit = asyncio.get_running_loop().create_task(state_of(run(session, "commit")))
        await log.sent(1)
        log.release(LogFenced("another leads"))
        assert await commit == "08007"
        await asyncio.wait_for(session.ended, 5)
        await database.follow()
        again = await database.session()
        assert await run(again, "select pg_xact_status($1)", (identity,)) == [("in progress",)]
        assert await run(again, "select pg_xact_status($1)", ((1 << 40) + 1,)) == [("committed",)]

    play(tmp_path, scene)


def test_rows_changed_during_the_commit_make_the_copy_diverged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()

        def late(self: WriterConnection, pending: object, end: int) -> None:
            raise LateChanges("rows were changed while the transaction committed")

        monkeypatch.setattr(WriterConnection, "commit", late)
        leading = next(task for task in asyncio.all_tasks() if task.get_name() == "leading")
        assert await state_of(run(session, "insert into t values(2)")) == "08007"
        with pytest.raises(Diverged, match="holds what the log does not"):
            await leading

    play(tmp_path, scene)


def test_waiters_for_a_writer_that_cannot_write_fail_when_the_leadership_ends(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        assert database.leadership is not None
        database.leadership.writer._local_fault = apsw.FullError("the disk is full")
        assert await state_of(run(session, "begin immediate")) == "57P01"

    play(tmp_path, scene)


def test_a_snapshot_that_was_not_confirmed_is_read_by_no_later_statement(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session, leadership = await database.session(), database.leadership
        assert leadership is not None
        proof, asked = leadership.reads.proof, list[int]()

        def failing_once() -> asyncio.Future[None]:
            asked.append(1)
            if len(asked) == 1:
                raise SqlError("57P01", "this node does not lead any more")
            return proof()

        leadership.reads.proof = failing_once  # type: ignore[method-assign]
        await run(session, "begin")
        await run(session, "savepoint s")
        assert await state_of(run(session, "select a from t")) == "57P01"
        await run(session, "rollback to s")
        assert await run(session, "select a from t") == [(1,)]
        assert len(asked) == 2
        assert await run(session, "select a from t") == [(1,)]
        await run(session, "commit")
        assert database.pool.oldest_snapshot_s == 0

    play(tmp_path, scene)


def test_a_logged_batch_that_the_copy_could_not_commit_is_not_reported_as_aborted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session, leadership = await database.session(), database.leadership
        assert leadership is not None
        await run(session, "begin")
        identity = (await run(session, "select pg_current_xact_id()"))[0][0]
        await run(session, "insert into t values(2)")

        def full(self: WriterConnection, pending: object, end: int) -> None:
            raise apsw.FullError("database or disk is full")

        monkeypatch.setattr(WriterConnection, "commit", full)
        assert await state_of(run(session, "commit")) == "08007"
        assert (await asyncio.wait_for(session.ended, 5)).sqlstate == "57P01"
        assert isinstance(identity, int)
        assert leadership.ids.status(identity & (1 << 40) - 1) == "in progress"

    play(tmp_path, scene)


@pytest.mark.parametrize("transaction", [False, True])
def test_a_statement_that_runs_when_the_leadership_is_lost_is_interrupted(tmp_path: Path, transaction: bool) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session, reading = await database.session(), await database.session()
        if transaction:
            await run(session, "begin immediate")
        endless = "insert into t with recursive c(x) as (select 1 union all select x + 1 from c) select max(x) from c"
        loop = asyncio.get_running_loop()
        running = loop.create_task(state_of(run(session, endless)))
        await asyncio.sleep(0.1)
        log.held = True
        read = loop.create_task(state_of(run(reading, "select a from t")))
        await log.sent(1)
        log.release(LogFenced("another leads"))
        assert await read == "57P01"
        assert await asyncio.wait_for(running, 5) == "57P01"
        assert (await asyncio.wait_for(session.ended, 5)).sqlstate == "57P01"
        assert not database.is_leader

    play(tmp_path, scene)


def test_an_old_number_that_aborts_late_makes_no_forgotten_one_look_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_functions, "_ABORTED_MAX", 2)
    numbers = TransactionIds(1)
    for _ in range(8):
        numbers.allocate()
    for number in (5, 6, 7, 1, 8):
        numbers.finish(number, committed=False)
    assert [numbers.status(number) for number in range(1, 9)] == [
        None,
        "in progress",
        "in progress",
        "in progress",
        None,
        None,
        "aborted",
        "aborted",
    ]


def test_a_transaction_that_lost_its_leader_says_so_rather_than_that_it_has_failed(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        leadership = database.leadership
        assert leadership is not None
        interrupted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        transaction = await leadership.claim(None, None, interrupted, StatementWaits(database.clock.monotonic))
        # Between the end of the leadership and that of its sessions.
        transaction.resolve(SqlError("57P01", "this node does not lead any more"))
        with pytest.raises(SqlError) as refused:
            await transaction.commit((), "")
        assert refused.value.sqlstate == "57P01"
        with pytest.raises(SqlError) as refused:
            await transaction.run(lambda: None)
        assert refused.value.sqlstate == "57P01"

    play(tmp_path, scene)


def test_a_transaction_that_waits_runs_before_the_answer_of_the_one_before(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, _log: HeldLog) -> None:
        one, other = await database.session(), await database.session()
        order: list[str] = []

        async def noted(session: SqlSession, sql: str) -> None:
            await run(session, sql)
            order.append(sql)

        for session in (one, other):
            await run(session, "begin")
        await run(one, "insert into t values(2)")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(noted(other, "insert into t values(3)"))
            tasks.create_task(noted(one, "commit"))
        assert order == ["insert into t values(3)", "commit"]
        assert visible(database) == [1, 2]
        await run(other, "commit")
        assert visible(database) == [1, 2, 3]

    play(tmp_path, scene)


def _with_defect(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Have a change of the value ``defect`` fail with an error of Python, after it has changed the row."""
    run_change = ChangeRunner.run

    def run_defective(self: ChangeRunner, prepared: Prepared, parameters: Sequence[Value], role: str | None = None) -> StatementOutcome:
        outcome = run_change(self, prepared, parameters, role)
        if "defect" in parameters:
            raise error
        return outcome

    monkeypatch.setattr(ChangeRunner, "run", run_defective)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (KeyError("whatever"), "XX000"),
        (InvalidOperation(), "22003"),
        (DivisionByZero(), "22012"),
        (ZeroDivisionError(), "22012"),
        (RecursionError(), "54001"),
        (MemoryError(), "53200"),
        (AssertionError(), "XX000"),
        (LookupError(), "XX000"),
    ],
)
def test_whatever_a_statement_raises_undoes_the_statement_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, state: str
) -> None:
    async def scene(database: SqlDatabase, _log: HeldLog) -> None:
        leadership = database.leadership
        _with_defect(monkeypatch, error)
        session = await database.session()
        prepared = await session.prepare("insert into t values($1)")
        together = [await database.session() for _ in range(5)]
        answers = await asyncio.gather(
            *[each.start(prepared, ("defect" if index == 2 else 10 + index,)) for index, each in enumerate(together)],
            return_exceptions=True,
        )
        refused = answers[2]
        assert isinstance(refused, SqlError)
        assert refused.sqlstate == state
        assert refused.__cause__ is error
        assert visible(database) == [1, 10, 11, 13, 14]
        await run(session, "begin")
        await run(session, "insert into t values(20)")
        with pytest.raises(SqlError) as failed:
            await session.start(prepared, ("defect",))
        assert failed.value.sqlstate == state
        await run(session, "rollback")
        await run(session, "insert into t values(30)")
        assert visible(database) == [1, 10, 11, 13, 14, 30]
        assert database.leadership is leadership

    play(tmp_path, scene)


def test_a_result_that_cannot_be_encoded_undoes_its_statement_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise KeyError("no such kind")

    async def scene(database: SqlDatabase, _log: HeldLog) -> None:
        leadership = database.leadership
        session = await database.session()
        with monkeypatch.context() as patched:
            patched.setattr(batch_builder, "encode_results", refuse)
            await session.set_request_id("one")
            with pytest.raises(SqlError) as refused:
                await run(session, "insert into t values(2)")
            assert refused.value.sqlstate == "XX000"
            await run(session, "begin")
            await session.set_request_id("two")
            await run(session, "insert into t values(3)")
            with pytest.raises(SqlError) as refused:
                await run(session, "commit")
            assert refused.value.sqlstate == "XX000"
        await run(session, "insert into t values(4)")
        assert visible(database) == [1, 4]
        assert database.leadership is leadership
        assert database.position == 3

    play(tmp_path, scene)
