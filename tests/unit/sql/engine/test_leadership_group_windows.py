"""Groups of statements that are at the log together, over a log whose acknowledgements the test holds back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from tests.property.rowlog_workload import contents
from tests.unit.sql.cluster import run, state_of
from tests.unit.sql.held_log import HeldLog, play, visible
from tests.waiting import eventually
from triplicate.errors import LogFenced, RecordTooLarge, SqlError
from triplicate.sql import SqlDatabase
from triplicate.sql.core.group_window import FURTHER_STATEMENTS, MAX_GROUPS
from triplicate.sql.executor.change_runner import ChangeRunner
from triplicate.sql.executor.interrupts import TransactionLost
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.applier import Applier, follow
from triplicate.sql.storage.sqlite_file import open_follower, open_store


async def insert_together(database: SqlDatabase, values: Sequence[int]) -> list[asyncio.Task[str]]:
    """Insert rows of table t with a session each, in one turn of the loop."""
    sessions = [await database.session() for _ in values]
    prepared = await sessions[0].prepare("insert into t values($1)")
    loop = asyncio.get_running_loop()
    return [loop.create_task(state_of(session.start(prepared, (value,)))) for session, value in zip(sessions, values, strict=True)]


async def two_groups(database: SqlDatabase, log: HeldLog) -> tuple[list[asyncio.Task[str]], list[asyncio.Task[str]]]:
    """Two groups that wait at the log: one statement with the value 10, and many with the values from 20."""
    log.held = True
    first = await insert_together(database, [10])
    await log.sent(1)
    second = await insert_together(database, range(20, 20 + FURTHER_STATEMENTS))
    await log.sent(2)
    return first, second


async def turns() -> None:
    """Let the loop run what is ready."""
    for _ in range(20):
        await asyncio.sleep(0)


async def applied(folder: Path, log: HeldLog, *, together: bool) -> dict[str, object]:
    """The contents of a follower's file that has applied everything that was sent."""
    path = str(folder / f"follower-{together}.db")
    open_store(path, b"i" * 16)
    connection = open_follower(path)
    applier = Applier(connection)
    for batches in [log.sent_batches] if together else [[batch] for batch in log.sent_batches]:
        follow(applier, batches)
    connection.close(True)
    return contents(path)


@pytest.mark.parametrize("order", [(0, 0), (1, 0)])
def test_nothing_of_a_window_is_answered_or_visible_before_all_of_it_is_acknowledged(tmp_path: Path, order: tuple[int, int]) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        first, second = await two_groups(database, log)
        position = database.position
        log.release_at(order[0])
        await turns()
        assert not any(task.done() for task in (*first, *second))
        assert visible(database) == [1]
        assert database.position == position
        log.release_at(order[1])
        assert {await task for task in (*first, *second)} == {""}
        assert visible(database) == [1, 10, *range(20, 20 + FURTHER_STATEMENTS)]
        assert database.position == position + 1 + FURTHER_STATEMENTS

    play(tmp_path, scene)


@pytest.mark.parametrize("failing", [0, 1])
def test_a_group_is_not_answered_as_stored_when_another_of_its_window_fails(tmp_path: Path, failing: int) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        first, second = await two_groups(database, log)
        late = await insert_together(database, [90])
        await turns()
        log.release_at(1 - failing)
        await turns()
        log.release_at(0, LogFenced("another leads"))
        assert {await task for task in (*first, *second)} == {"08007"}
        assert [await task for task in late] == ["57P01"]
        assert visible(database) == [1]

    play(tmp_path, scene)


def test_the_leaders_file_equals_that_of_followers(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        await run(session, "create table counted(id integer primary key autoincrement, v unique)")
        for round_ in range(3):
            first, second = await two_groups(database, log)
            named = [await database.session() for _ in range(3 * FURTHER_STATEMENTS)]
            insert = await named[0].prepare("insert into counted(v) values($1) on conflict do nothing")
            for index, one in enumerate(named):
                await one.set_request_id(f"{round_} {index % 20}")
            loop = asyncio.get_running_loop()
            third = [loop.create_task(state_of(one.start(insert, (index % 5,)))) for index, one in enumerate(named)]
            await log.sent(3)
            log.held = False
            log.release()
            assert {await task for task in (*first, *second, *third)} == {""}
        assert await run(session, "select count(*) from counted") == [(5,)]
        await run(session, "insert into counted(v) values(77)")
        leader = contents(database.path)
        for together in (False, True):
            assert await applied(tmp_path, log, together=together) == leader

    play(tmp_path, scene)


def test_a_repeated_request_of_an_open_window_gets_the_stored_result(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        log.held = True
        one, loop = await database.session(), asyncio.get_running_loop()
        insert = await one.prepare("insert into t values($1) returning a")
        await one.set_request_id("an id")
        first = loop.create_task(one.start(insert, (2,)))
        await log.sent(1)
        others = [await database.session() for _ in range(FURTHER_STATEMENTS)]
        await others[3].set_request_id("an id")
        rest = [loop.create_task(session.start(insert, (index,))) for index, session in enumerate(others)]
        await log.sent(2)
        await turns()
        assert not rest[3].done()
        log.release()
        assert await (await first).fetch(9) == [(2,)]
        assert await (await rest[3]).fetch(9) == [(2,)]
        for task in rest:
            await task
        assert visible(database).count(2) == 2
        assert visible(database).count(3) == 0

    play(tmp_path, scene)


def test_an_answer_without_changes_waits_for_the_changes_that_it_has_met(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        await run(session, "create table k(id integer primary key)")
        log.held = True
        loop = asyncio.get_running_loop()
        insert = await session.prepare("insert into k values($1)")
        first = loop.create_task(state_of(session.start(insert, (1,))))
        await log.sent(1)
        others = [await database.session() for _ in range(FURTHER_STATEMENTS)]
        rest = [loop.create_task(state_of(other.start(insert, (1,)))) for other in others]
        await log.sent(2)  # The no-op that confirms them.
        log.release_at(1)
        await turns()
        assert not any(task.done() for task in rest)
        log.release()
        assert await first == ""
        assert {await task for task in rest} == {"23505"}

    play(tmp_path, scene)


def test_a_number_at_the_log_is_in_progress_and_stays_so_when_the_leadership_is_lost(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session, leadership = await database.session(), database.leadership
        assert leadership is not None
        first, second = await two_groups(database, log)
        numbers = range(leadership.ids.last - FURTHER_STATEMENTS, leadership.ids.last + 1)
        identity = (leadership.ids.epoch << 40) + leadership.ids.last
        asked = asyncio.get_running_loop().create_task(run(session, "select pg_xact_status($1)", (identity,)))
        await log.sent(3)
        log.release_at(2)
        assert await asked == [("in progress",)]
        log.release(LogFenced("another leads"))
        await asyncio.gather(*first, *second)
        assert {leadership.ids.status(number) for number in numbers} == {"in progress"}

    play(tmp_path, scene)


def test_an_interactive_transaction_begins_when_the_window_is_committed(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        first, second = await two_groups(database, log)
        session = await database.session()
        loop = asyncio.get_running_loop()
        beginning = loop.create_task(run(session, "begin immediate"))
        behind = await insert_together(database, range(50, 50 + 4 * FURTHER_STATEMENTS))
        await turns()
        assert log.waiting == 2
        assert not beginning.done()
        log.release()
        await beginning
        assert {await task for task in (*first, *second)} == {""}
        log.held = False
        assert (await run(session, "select count(*) from t"))[0] == (2 + FURTHER_STATEMENTS,)
        await run(session, "rollback")
        assert {await task for task in behind} == {""}

    play(tmp_path, scene)


@pytest.mark.parametrize("sql", ["update t set a = a + 100", "create table further(a)"])
def test_long_statements_and_schema_changes_wait_for_the_next_window(tmp_path: Path, sql: str) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        prepared = await session.prepare(sql)
        log.held = True
        first = await insert_together(database, [10])
        await log.sent(1)
        second = await insert_together(database, range(20, 20 + FURTHER_STATEMENTS))
        long = asyncio.get_running_loop().create_task(state_of(session.start(prepared, ())))
        third = await insert_together(database, range(60, 60 + 4 * FURTHER_STATEMENTS))
        await turns()
        assert log.waiting == 2
        log.release()
        await asyncio.gather(*first, *second)
        await log.sent(1)
        log.held = False
        log.release()
        assert {await task for task in (long, *third)} == {""}
        assert await run(session, "select count(*) from t") == [(2 + 5 * FURTHER_STATEMENTS,)]

    play(tmp_path, scene)


def test_a_window_has_a_limited_number_of_groups(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        log.held = True
        tasks, size = [], 1
        for _ in range(MAX_GROUPS + 2):
            tasks += await insert_together(database, range(size))
            await turns()
            size = max(FURTHER_STATEMENTS, 2 * size)
            if size > 600:
                break
        assert log.waiting <= MAX_GROUPS
        log.held = False
        log.release()
        assert {await task for task in tasks} == {""}

    play(tmp_path, scene)


def test_a_group_that_the_log_refuses_leaves_the_groups_before_it(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        log.held = True
        first = await insert_together(database, [10])
        await log.sent(1)

        async def refuse(values: object, *, preamble: object = None) -> range:
            raise RecordTooLarge("too large")

        append, log.append_entry = log.append_entry, refuse  # type: ignore[method-assign]
        second = await insert_together(database, range(20, 20 + FURTHER_STATEMENTS))
        assert {await task for task in second} == {"54000"}
        log.append_entry = append  # type: ignore[method-assign]
        log.held = False
        log.release()
        assert [await task for task in first] == [""]
        assert [await task for task in await insert_together(database, [30])] == [""]
        assert visible(database) == [1, 10, 30]

    play(tmp_path, scene)


def test_a_transaction_that_sqlite_ends_under_a_window_ends_the_leadership(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        log.held = True
        first = await insert_together(database, [10])
        await log.sent(1)

        def lose(self: ChangeRunner, *_: object) -> None:
            self._connection.execute("rollback")
            raise TransactionLost(SqlError("53100", "the disk is full"))

        monkeypatch.setattr(ChangeRunner, "run", lose)
        second = await insert_together(database, range(20, 20 + FURTHER_STATEMENTS))
        assert [await task for task in first] == ["08007"]
        assert {await task for task in second} == {"57P01"}
        await eventually(lambda: not database.is_leader)
        assert visible(database) == [1]

    play(tmp_path, scene)


def test_a_window_that_the_copy_cannot_commit_is_of_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        first, second = await two_groups(database, log)

        def full(self: WriterConnection, pending: object, end: int) -> None:
            raise apsw.FullError("database or disk is full")

        monkeypatch.setattr(WriterConnection, "commit", full)
        log.release()
        assert {await task for task in (*first, *second)} == {"08007"}

    play(tmp_path, scene)


def test_a_long_statement_at_the_head_of_the_queue_adds_nothing_to_the_window(tmp_path: Path) -> None:
    """An empty group was part of the window, which then waited for a no-op of its own."""

    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        prepared = await session.prepare("update t set a = a + 100")
        first, second = await two_groups(database, log)
        noops = log.noops
        long = asyncio.get_running_loop().create_task(state_of(session.start(prepared, ())))
        third = await insert_together(database, range(60, 60 + 4 * FURTHER_STATEMENTS))
        await turns()
        assert log.noops == noops
        assert log.waiting == 2
        log.release()
        assert {await task for task in (*first, *second)} == {""}
        log.held = False
        log.release()
        assert {await task for task in (long, *third)} == {""}

    play(tmp_path, scene)
