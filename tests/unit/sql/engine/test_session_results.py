"""Results of a session that stay open: what ends them, and what they give afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, play, run, state_of


def test_large_results_are_fetched_in_parts_and_survive_later_writes(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await run(session, "with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000) insert into t select x from c")
        await run(session, "begin immediate")
        cursor = await session.start(await session.prepare("select a from t order by a"), ())
        first = await cursor.fetch(10)
        await run(session, "delete from t")
        rest = [row for _ in range(11) for row in await cursor.fetch(100)]
        assert [row[0] for row in first + rest] == list(range(1, 1001))
        await run(session, "rollback")
        cursor = await session.start(await session.prepare("select a from t order by a"), ())
        assert len(await cursor.fetch(900)) == 900
        await cursor.close()
        assert await run(session, "select count(*) from t") == [(1000,)]

    play(tmp_path, scene)


@pytest.mark.parametrize("before", ["begin", "begin immediate", "begin immediate; create table u(a)", "begin; insert into t values(0)"])
def test_rollback_to_a_savepoint_ends_the_results_within_it_and_no_others(tmp_path: Path, before: str) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await run(session, "with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000) insert into t select x from c")
        for statement in before.split("; "):
            await run(session, statement)
        select = await session.prepare("select a from t where a > 0")
        older = await session.start(select, ())
        assert await older.fetch(1) == [(1,)]
        await run(session, "savepoint s")
        inner = await session.start(select, ())
        await run(session, "savepoint s")
        innermost = await session.start(select, ())
        assert await inner.fetch(1) == await innermost.fetch(1) == [(1,)]
        for further in (innermost, inner):
            await run(session, "rollback to s")
            assert await state_of(further.fetch(1)) == "55000"
            session.go_on()
            await run(session, "release s")
        assert [row[0] for row in await older.fetch(2000)] == list(range(2, 1001))
        await run(session, "savepoint s")
        await run(session, "insert into t values(5000)")
        await run(session, "rollback to s")
        assert await run(session, "select max(a) from t") == [(1000,)]
        await run(session, "rollback")

    play(tmp_path, scene)


def test_a_result_that_was_ended_early_is_not_taken_for_one_at_its_end(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "begin")
        endless = "with recursive c(x) as (select 1 union all select x + 1 from c) select %s from c"
        failing = endless % "abs(case x when 900 then -9223372036854775808 end)"
        cursor = await session.start(await session.prepare(failing), ())
        assert await state_of(cursor.fetch(2000)) == "22003"
        assert await state_of(cursor.fetch(1)) == "55000"
        session.go_on()
        cursor = await session.start(await session.prepare(endless % "x"), ())
        await run(session, "rollback")
        assert await state_of(cursor.fetch(1)) == "55000"

    play(tmp_path, scene)
