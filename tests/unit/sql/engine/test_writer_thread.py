"""The parts of a leader's work that run on the event loop, and those that run on the writer's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.unit.sql.cluster import run, state_of
from tests.unit.sql.held_log import HeldLog, play
from tests.waiting import eventually
from triplicate.sql import SqlDatabase
from triplicate.sql.engine.writer_thread import WriterThread
from triplicate.sql.executor.change_runner import ChangeRunner
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage import wal_checkpointer
from triplicate.sql.storage.wal_checkpointer import WalCheckpointer


def threads_of(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[bool]:
    """For each call of a method from now on, whether it was on the thread of the test."""
    here = threading.get_ident()
    calls: list[bool] = []
    method: Callable[..., Any] = getattr(owner, name)

    def noted(*arguments: Any, **named: Any) -> Any:
        calls.append(threading.get_ident() == here)
        return method(*arguments, **named)

    monkeypatch.setattr(owner, name, noted)
    return calls


def test_short_statements_and_transactions_run_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        await run(session, "create table k(id integer primary key, v)")
        hops = threads_of(monkeypatch, WriterThread, "run")
        started = threads_of(monkeypatch, WriterThread, "start_statement")
        for index in range(5):
            await run(session, "insert into k values($1, $2)", (index, "x"))
        await run(session, "begin immediate")
        await run(session, "update k set v = $1 where id = $2", ("y", 1))
        assert await run(session, "select v from k where id = $1", (1,)) == [("y",)]
        await run(session, "commit")
        await run(session, "begin immediate")
        await run(session, "delete from k where id = $1", (1,))
        await run(session, "rollback")
        assert await run(session, "select count(*) from k") == [(5,)]
        assert (hops, started) == ([], [])

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("insert into t with recursive c(x) as (select 1 union all select x + 1 from c limit 10) select x from c", ()),
        ("update t set a = 5", ()),
        ("insert into t values($1)", ("x" * 20_000,)),
        (f"insert into t values('{'x' * 5000}')", ()),
        ("create table further(a)", ()),
    ],
)
def test_other_statements_run_on_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, parameters: tuple[str, ...]) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        statements = threads_of(monkeypatch, ChangeRunner, "run")
        commits = threads_of(monkeypatch, WriterConnection, "commit")
        await run(session, sql, parameters)
        await run(session, "begin immediate")
        await run(session, sql.replace("further", "more"), parameters)
        await run(session, "commit")
        assert statements == [False, False]
        assert commits == [False, False]

    play(tmp_path, scene)


def test_short_statements_before_and_behind_a_long_one_in_a_batch_have_their_effect(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        sessions = [await database.session() for _ in range(41)]
        short = await sessions[0].prepare("insert into t values($1)")
        long = await sessions[0].prepare("update t set a = a + 1000")
        log.held = True
        loop = asyncio.get_running_loop()
        first = loop.create_task(sessions[0].start(short, (0,)))
        await log.sent(1)
        tasks = [
            loop.create_task(session.start(long if index == 36 else short, () if index == 36 else (index,)))
            for index, session in enumerate(sessions)
            if index
        ]
        await asyncio.sleep(0.01)
        log.held = False
        log.release()
        await asyncio.gather(first, *tasks)
        rows = await run(sessions[0], "select a from t order by a")
        assert rows == [(a,) for a in (*range(37, 41), 1000, 1001, *range(1001, 1036))]

    play(tmp_path, scene)


def test_a_checkpoint_and_the_commit_that_begins_the_log_again_run_on_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        commits = threads_of(monkeypatch, WriterConnection, "commit")
        checkpoints = threads_of(monkeypatch, WalCheckpointer, "run")
        while not checkpoints:
            await run(session, "insert into t values($1)", (bytes(15_000),))
        await run(session, "insert into t values(1)")
        await run(session, "insert into t values(1)")
        assert checkpoints == [False]
        # The insert that meets the checkpoint may be the last of the loop, or the first behind it.
        assert commits.count(False) == 1
        assert False in commits[-3:-1]

    play(tmp_path, scene)


def test_a_checkpoint_is_tried_once_for_each_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        monkeypatch.setattr(wal_checkpointer, "_CHECKPOINT_PAGES", 1)
        checkpoints = threads_of(monkeypatch, WalCheckpointer, "run")
        await run(session, "insert into t values(2)")
        await eventually(lambda: len(checkpoints) == 1)
        for sql in ("begin immediate", "rollback", "delete from t where a = 99", "begin immediate", "select a from t", "commit"):
            await run(session, sql)
        assert len(checkpoints) == 1
        await run(session, "insert into t values(3)")
        await eventually(lambda: len(checkpoints) == 2)

    play(tmp_path, scene)


def test_a_batch_waits_on_the_thread_for_another_process_that_writes_the_file(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        await run(session, "insert into t values(2)")
        other = apsw.Connection(database.path)
        other.execute("begin immediate")
        loop = asyncio.get_running_loop()
        writing = loop.create_task(state_of(run(session, "insert into t values(3)")))
        began = loop.time()
        await asyncio.sleep(0.2)
        assert loop.time() - began < 1
        assert not writing.done()
        other.execute("rollback")
        other.close()
        assert await writing == ""

    play(tmp_path, scene)
