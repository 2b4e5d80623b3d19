from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sql.cluster import Cluster, play
from tests.waiting import eventually
from triplicate.errors import SqlError
from triplicate.sql import InProcessSession, PreparedCache
from triplicate.sql.catalogue.live_tables import LIVE_TABLES
from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.interface import Prepared
from triplicate.sql.core.live_rows import LiveRequest
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.datetimes import text_of_micros

Scene = Callable[[Cluster, InProcessSession], Awaitable[None]]


def session_of_a_leader(folder: Path, scene: Scene) -> None:
    async def body(cluster: Cluster) -> None:
        session = await InProcessSession.open(await cluster.leader(), PreparedCache())
        await session.execute_script("create table t(id integer primary key, a unique)")
        await scene(cluster, session)
        await session.close()

    play(folder, body)


async def values(session: InProcessSession) -> list[object]:
    return [row[0] for row in (await session.execute("select a from t order by id"))[1]]


def test_an_error_undoes_its_statement_and_the_transaction_goes_on(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        await session.execute("begin")
        await session.execute("insert into t(a) values (1)")
        for wrong in ("insert into t(a) values (2), (1)", "select missing from t", "nonsense", "select abs(-9223372036854775808)"):
            with pytest.raises(SqlError):
                await session.execute(wrong)
        with pytest.raises(SqlError):
            await session.execute_many("insert into t(a) values (?)", [(3,), (1,)])
        assert session.in_transaction
        await session.execute("insert into t(a) values (4)")
        await session.execute("commit")
        assert await values(session) == [1, 4]

    session_of_a_leader(tmp_path, scene)


def test_rows_that_end_with_an_error_of_the_program_change_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[int]]:
        yield (2,)
        raise ZeroDivisionError

    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        with pytest.raises(ZeroDivisionError):
            await session.execute_many("insert into t(a) values (?)", broken())
        assert not session.in_transaction
        await session.execute("begin")
        await session.execute("insert into t(a) values (1)")
        with pytest.raises(ZeroDivisionError):
            await session.execute_many("insert into t(a) values (?)", broken())
        await session.execute("insert into t(a) values (3)")
        await session.execute("commit")
        assert await values(session) == [1, 3]

    session_of_a_leader(tmp_path, scene)


def test_statements_are_counted_with_their_rows_errors_and_waits(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        database = await cluster.leader()
        statistics = database.activity.statements
        waiting, holding = [await InProcessSession.open(database, PreparedCache()) for _ in range(2)]
        slow: list[str] = []
        statistics.slow_s, statistics.on_slow = 0.01, lambda use, seconds, rows: slow.append(use.text)
        statistics.reset()
        assert await session.execute_many("insert into t(a) values (?)", [(number,) for number in range(5)]) == 5
        started = await session.start("select a from t where a < 7")
        assert [len(await started.fetch(2)) for _ in range(3)] == [2, 2, 1]
        await started.close()
        await (await session.start("select a from t where a < 8")).close()
        with pytest.raises(SqlError):
            await session.execute("insert into t(a) values ('secret'), (1)")
        await holding.execute("begin immediate")
        autocommit = asyncio.get_running_loop().create_task(waiting.execute("update t set a = 9 where a = ?", (1,)))
        claim = asyncio.get_running_loop().create_task(session.execute_many("delete from t where a = ?", [(2,), (3,)]))
        await eventually(lambda: session._session.writer_use == "waits" and waiting._session.waits.began_s > 0)
        began_s = database.clock.monotonic()
        await eventually(lambda: database.clock.monotonic() - began_s > 0.01)
        await holding.execute("commit")
        assert (await autocommit)[0].rows_changed == 1
        assert await claim == 2

        uses = {use.text: use for use in statistics.uses()}
        counted = {text: (use.calls, use.errors, use.rows) for text, use in uses.items()}
        assert counted == {
            "insert into t(a) values (?)": (5, 0, 5),
            "select a from t where a < $1": (2, 0, 5),
            "insert into t(a) values ($1), ($2)": (1, 1, 0),
            "begin immediate": (1, 0, 0),
            "commit": (1, 0, 0),
            "BEGIN": (2, 0, 0),
            "COMMIT": (2, 0, 0),
            "update t set a = $1 where a = ?": (1, 0, 1),
            "delete from t where a = ?": (2, 0, 2),
        }
        change, removal = uses["update t set a = $1 where a = ?"], uses["delete from t where a = ?"]
        assert change.log_wait_s > 0
        for use in (change, removal):
            assert 0.01 < use.writer_wait_s < use.total_s
            assert use.text in slow
        assert uses["COMMIT"].log_wait_s > 0
        assert all(use.writer_wait_s + use.log_wait_s + use.read_wait_s <= use.total_s for use in uses.values())
        for one in (waiting, holding):
            await one.close()

    session_of_a_leader(tmp_path, scene)


async def shown(database: SqlDatabase, table: str = "triplicate_sessions") -> list[dict[str, Any]]:
    """The rows of applications' sessions in a view, the oldest session first."""
    names = [column.split()[0] for column in LIVE_TABLES[table].split(",")]
    request = LiveRequest((), None, AccessRights())
    found = [dict(zip(names, row, strict=True)) for row in await database.activity.sources[table](request)]
    return sorted((row for row in found if "app" in str(row.values())), key=lambda row: -row["pid"])


def test_sessions_are_shown_with_their_statements_and_transactions(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        database = await cluster.leader()
        holding, waiting = [await InProcessSession.open(database, PreparedCache(), f"app-{name}") for name in "ab"]
        new = await shown(database)
        assert [(row["application"], row["address"], row["state"], row["statement"]) for row in new] == [
            ("app-a", "", "idle", None),
            ("app-b", "", "idle", None),
        ]
        assert len({row["pid"] for row in new}) == 2
        assert all(row["pid"] < 0 for row in new), "no connection has such a number"
        began = text_of_micros(database.clock.wall_us(), types.TIMESTAMPTZ)
        await holding.execute("begin immediate")
        await holding.execute("insert into t(a) values (5) -- a comment")
        wait = asyncio.get_running_loop().create_task(waiting.execute_many("delete from t where a = ?", [(7,)]))
        await eventually(lambda: waiting._session.writer_use == "waits")
        assert [(row["state"], row["writer"], row["statement"]) for row in await shown(database)] == [
            ("idle in transaction", "holds", "insert into t(a) values ($1)"),
            ("active", "waits", "delete from t where a = ?"),
        ]
        (first, second) = await shown(database, "pg_stat_activity")
        assert began <= first["xact_start"] <= first["query_start"] <= text_of_micros(database.clock.wall_us(), types.TIMESTAMPTZ)
        assert (first["state"], second["wait_event"]) == ("idle in transaction", "writer")
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert (await shown(database))[1]["state"] == "idle"
        await holding.close()
        assert [row["application"] for row in await shown(database)] == ["app-b"]
        waiting._session.end(SqlError("57P01", "the node ends it"))
        await eventually(lambda: len(database.activity.clients) == 1)

    session_of_a_leader(tmp_path, scene)


def test_live_tables_are_read_by_their_names(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        other = await InProcessSession.open(await cluster.leader(), PreparedCache(), "app-b")
        await other.execute("begin immediate")
        sql = "select application, writer from triplicate_sessions where pid < ? and application = ?"
        for state in ("holds", None):
            assert (await session.execute(sql, (0, "app-b")))[1] == [("app-b", state)], "the rows are those of now"
            await other.execute("rollback" if state else "select 1")
        named = 'select a.pid = :pid from triplicate_sessions a left join "triplicate_locks" l on a.pid = l.pid where application = :name'
        assert (await session.execute(named, {"pid": -2, "name": "app-b"}))[1] == [(1,)]
        assert (await session.execute("select sum(calls) > 0, ?2 from Triplicate_Statements where ?1 = 5", (5, 6)))[1] == [(1, 6)]
        for written in ("insert into t(a) select pid from triplicate_sessions", "select * from triplicate_changes"):
            with pytest.raises(SqlError, match="can be read "):
                await session.execute(written)
        await other.close()

    session_of_a_leader(tmp_path, scene)


def test_a_live_table_without_a_source_is_named(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        del (await cluster.leader()).activity.sources["triplicate_locks"]
        with pytest.raises(SqlError, match="triplicate_locks is not available on this node"):
            await session.execute("select * from triplicate_locks")

    session_of_a_leader(tmp_path, scene)


def test_a_statement_that_begins_in_the_turn_of_the_one_before_is_shown_as_running(tmp_path: Path) -> None:
    """The clock of an event loop stands still in a turn."""

    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        now_s = session._counts.now()
        session._counts.now = lambda: now_s
        await session.execute("select 1")
        assert (await session.execute("select state from triplicate_sessions"))[1] == [("active",)]

    session_of_a_leader(tmp_path, scene)


def test_a_text_that_is_no_statement_for_sqlite_is_refused(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        wrong: list[Any] = [None, b"select 1", 5, "select 1\0; drop table t"]
        for sql in wrong:
            for call in (session.execute, session.kind_of, session.execute_script):
                with pytest.raises(SqlError, match="a statement "):
                    await call(sql)
            with pytest.raises(SqlError, match="a statement "):
                await session.execute_many(sql, [(1,)])
        assert await values(session) == []

    session_of_a_leader(tmp_path, scene)


def test_a_commit_of_a_transaction_that_has_ended_is_an_error(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        await session.execute("begin")
        await session.execute("insert into t(a) values (1)")
        # The leader's node ends the transaction, as at a limit.
        held = session._session._held
        assert held is not None
        held.transaction._limit_reached()
        with pytest.raises(SqlError, match="held the writer"):
            await session.execute("insert into t(a) values (2)")
        with pytest.raises(SqlError) as failure:
            await session.execute("commit")
        assert failure.value.sqlstate == "25P02"
        assert not session.in_transaction
        assert await values(session) == []

    session_of_a_leader(tmp_path, scene)


def test_a_prepared_statement_follows_the_schema(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        await session.execute("insert into t(a) values (1)")
        assert (await session.execute("select * from t"))[1] == [(1, 1)]
        other = await InProcessSession.open(await cluster.leader(), PreparedCache())
        await other.execute("alter table t add column b default 5")
        started, rows = await session.execute("select * from t")
        assert ([column.name for column in started.columns], rows) == (["id", "a", "b"], [(1, 1, 5)])
        await other.close()

    session_of_a_leader(tmp_path, scene)


def test_a_statement_is_prepared_again_when_the_schema_moves_under_it(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        other = await InProcessSession.open(await cluster.leader(), PreparedCache())
        prepare, moves = session._session.prepare, ["alter table t add column b default 5"]

        async def prepare_and_move(sql: str) -> Prepared:
            prepared = await prepare(sql)
            while moves:
                await other.execute(moves.pop())
            return prepared

        session._session.prepare = prepare_and_move  # type: ignore[method-assign]
        started, rows = await session.execute("insert into t(a) values (1) returning *")
        assert ([column.name for column in started.columns], rows) == (["id", "a", "b"], [(1, 1, 5)])
        await other.close()

    session_of_a_leader(tmp_path, scene)


def test_many_rows_are_a_transaction_of_their_own_outside_of_one(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        assert await session.execute_many("insert into t(a) values (?)", [(1,), (2,)]) == 2
        with pytest.raises(SqlError):
            await session.execute_many("insert into t(a) values (?)", [(3,), (1,)])
        assert not session.in_transaction
        assert await values(session) == [1, 2]
        with pytest.raises(SqlError, match="without RETURNING"):
            await session.execute_many("select ?", [(1,)])

    session_of_a_leader(tmp_path, scene)


def test_the_rowid_is_known_of_inserts_only(tmp_path: Path) -> None:
    async def scene(cluster: Cluster, session: InProcessSession) -> None:
        async def row_id(sql: str) -> int | None:
            return (await session.execute(sql))[0].last_row_id

        assert await row_id("insert into t(id, a) values (5, 1)") == 5
        assert await row_id("replace into t(id, a) values (5, 2)") == 5
        assert await row_id("insert or ignore into t(id, a) values (5, 3)") is None
        assert await row_id("update t set a = 4") is None
        assert await row_id("select 1") is None

    session_of_a_leader(tmp_path, scene)
