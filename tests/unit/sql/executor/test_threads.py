"""Databases of one node share its threads."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

from tests.unit.sql.cluster import SETTINGS, Cluster, fill, play, run, state_of


def sql_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "/sql-" in thread.name}


def test_many_databases_use_no_more_threads_than_the_settings_say(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        few = replace(SETTINGS, shared_writer_threads=2, shared_reader_threads=2, shared_examiner_threads=1)
        before = sql_threads()  # A test before this one may have left a thread that is about to end.
        await cluster.start("n1", few)
        names = ["db", *(f"more-{number}" for number in range(12))]
        for name in names[1:]:
            await cluster.create(name)

        async def use(name: str) -> None:
            session = await (await cluster.leader(name)).session()
            await run(session, "create table t(a)")
            for number in range(5):
                await run(session, "insert into t values($1)", (number,))
            rows = await run(session, "select count(*) from t")
            assert rows == [(5,)]

        await asyncio.gather(*(use(name) for name in names))
        assert 0 < len(sql_threads() - before) <= 5
        await cluster.nodes["n1"].stop()
        del cluster.nodes["n1"]
        assert sql_threads() <= before

    play(tmp_path, scene, nodes=0)


def test_a_long_statement_of_one_database_delays_no_other(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", replace(SETTINGS, shared_reader_threads=2, reader_threads=1))
        await cluster.create("other")
        await fill(cluster, 3)
        slow = await (await cluster.leader()).session()
        endless = asyncio.ensure_future(
            state_of(run(slow, "with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) from c"))
        )
        session = await (await cluster.leader("other")).session()
        await run(session, "create table t(a)")
        assert await run(session, "select count(*) from t") == [(0,)]
        assert not endless.done()
        slow.cancel()
        assert await endless == "57014"

    play(tmp_path, scene, nodes=0)
