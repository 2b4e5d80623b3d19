"""Random orders of statements, acknowledgements and failures: what a leader with several groups at the log answers and shows."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.property.rowlog_workload import contents
from tests.unit.sql.cluster import run
from tests.unit.sql.held_log import HeldLog, play, visible
from triplicate.errors import LogFenced, SqlError
from triplicate.sql import SqlDatabase, decode_header, decode_transaction
from triplicate.sql.core.records import RowKind, RowRun
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.sqlite_file import open_follower, open_store

STEPS = 60
LONG = "insert into t with recursive c(x) as (select $1 union all select null from c limit 1) select x from c"
KINDS = ["short"] * 12 + ["long", "unchanged", "named", "block", "schema", "read"]


def inserted(batch: LogBatch) -> set[int]:
    """The values that a batch inserts into table t."""
    tables = decode_header(batch.preamble or b"").tables
    found: set[int] = set()
    for record in batch.records:
        for operation in decode_transaction(record, tables).operations:
            if isinstance(operation, RowRun) and operation.kind is RowKind.INSERT and operation.table.name == "t":
                assert operation.new is not None, "an insert has values"
                found.update(int(str(value)) for value in operation.new[0])
    return found


class Orders:
    """One run: clients with values of their own, and a log that acknowledges in any order."""

    def __init__(self, database: SqlDatabase, log: HeldLog, seed: int) -> None:
        self.database = database
        self.log = log
        self.chance = random.Random(seed)
        self.last = 1000
        self.answers: dict[int, str] = {}
        """SQLSTATE by value; empty for a value that is stored."""
        self.tasks: list[asyncio.Task[None]] = []

    def acknowledged(self) -> set[int]:
        found: set[int] = set()
        for index in self.log.acknowledged:
            found |= inserted(self.log.sent_batches[index])
        return found

    def sent(self) -> set[int]:
        return set().union(*map(inserted, self.log.sent_batches))

    async def client(self, kind: str, value: int) -> None:
        session = await self.database.session()
        try:
            await self.act(session, kind, value)
            if kind not in ("unchanged", "read", "schema"):
                assert value in self.acknowledged(), "an answer comes after the acknowledgement"
                assert value in visible(self.database), "an answer comes after the commit"
                self.answers[value] = ""
        except SqlError as error:
            if kind != "schema":
                self.answers[value] = error.sqlstate
        finally:
            await session.close()

    async def act(self, session: SqlSession, kind: str, value: int) -> None:
        if kind == "block":
            await run(session, "begin immediate")
            (before,) = (await run(session, "select count(*) from t"))[0]
            assert before == len(visible(self.database)), "a transaction reads what is committed"
            await run(session, "insert into t values($1)", (value,))
            await run(session, "commit")
        elif kind == "named":
            await session.set_request_id(f"id {value}")
            await run(session, "insert into t values($1)", (value,))
        elif kind == "schema":
            await run(session, f"create table if not exists further_{value % 5}(a)")
        elif kind == "unchanged":
            await run(session, "delete from t where a = -1")
        elif kind == "read":
            await run(session, "select a from t")
        else:
            await run(session, LONG if kind == "long" else "insert into t values($1)", (value,))

    async def play(self) -> None:
        setup = await self.database.session()
        await run(setup, "create table counted(id integer primary key autoincrement)")
        self.log.held = True
        for _ in range(STEPS):
            for _ in range(self.chance.choice([0, 1, 2, 6, 14])):
                self.last += 1
                work = self.client(self.chance.choice(KINDS), self.last)
                self.tasks.append(asyncio.get_running_loop().create_task(work))
            for _ in range(self.chance.choice([0, 1, 5, 30])):
                await asyncio.sleep(0)
            if self.chance.random() < 0.2:
                await asyncio.sleep(0.002)
            if self.log.waiting and self.chance.random() < 0.6:
                self.log.release_at(self.chance.randrange(self.log.waiting))
            assert set(visible(self.database)) - {1} <= self.acknowledged(), "nothing is visible before its acknowledgement"

    async def end(self) -> None:
        self.log.held = False
        self.log.release()
        await asyncio.wait_for(asyncio.gather(*self.tasks), 30)


def follower(folder: Path, batches: list[LogBatch], *, together: bool) -> dict[str, object]:
    path = str(folder / f"follower-{together}.db")
    open_store(path, b"i" * 16)
    connection = open_follower(path)
    applier = Applier(connection)
    for group in [batches] if together else [[batch] for batch in batches]:
        follow(applier, group)
    connection.close(True)
    return contents(path)


@pytest.mark.parametrize("seed", range(12))
def test_answers_and_rows_follow_the_acknowledgements(tmp_path: Path, seed: int) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        orders = Orders(database, log, seed)
        await orders.play()
        await orders.end()
        assert set(orders.answers.values()) <= {"", "55P03"}, "a transaction may wait for the writer for too long"
        stored = {value for value, answer in orders.answers.items() if not answer}
        assert set(visible(database)) - {1} == orders.sent() - {1} == stored
        leader = contents(database.path)
        assert follower(tmp_path, log.sent_batches, together=False) == leader
        assert follower(tmp_path, log.sent_batches, together=True) == leader

    play(tmp_path, scene)


@pytest.mark.parametrize("seed", range(100, 112))
def test_the_end_of_a_leadership_leaves_no_answer_that_the_log_may_contradict(tmp_path: Path, seed: int) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        orders = Orders(database, log, seed)
        await orders.play()
        while not log.waiting:
            orders.tasks.append(asyncio.get_running_loop().create_task(orders.client("short", orders.last + 1)))
            orders.last += 1
            await asyncio.sleep(0.001)
        log.release_at(orders.chance.randrange(log.waiting), LogFenced("another leads"))
        await asyncio.wait_for(asyncio.gather(*orders.tasks), 30)
        sent = orders.sent()
        for value, answer in orders.answers.items():
            assert answer in ("", "08007", "57P01", "25006", "25P02", "55P03"), answer
            assert answer != "08007" or value in sent, "only what was sent has an unknown outcome"
            assert answer in ("", "08007") or value not in sent, "what may be stored is not denied"
        assert set(visible(database)) - {1} <= orders.acknowledged()
        # The node follows: the log's entries bring its copy to where a follower is.
        await database.follow()
        connection = open_follower(database.path)
        follow(Applier(connection), [batch for batch in log.sent_batches if batch.first_offset >= database.position])
        connection.close(True)
        assert contents(database.path) == follower(tmp_path, log.sent_batches, together=False)

    play(tmp_path, scene)
