"""Long rows are fetched a few at a time, so that a result does not fill the memory of its node."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.unit.sql.cluster import Cluster, play, run, state_of
from triplicate.sql.engine import open_results
from triplicate.sql.executor import change_runner, short_reads

LONG = "select n, hex(zeroblob(500000)) from (with recursive c(n) as (select 1 union all select n + 1 from c limit 300) select n from c)"


def test_a_batch_ends_at_its_number_of_rows_or_of_bytes() -> None:
    cursor = apsw.Connection(":memory:").execute(
        "with recursive c(n) as (select 1 union all select n + 1 from c limit 500) select n from c"
    )
    assert [len(rows) for rows, _ in (short_reads.next_rows(cursor, 200) for _ in range(4))] == [200, 200, 100, 0]
    cursor = apsw.Connection(":memory:").execute(LONG)
    rows, is_end = short_reads.next_rows(cursor, 200)
    assert sum(map(short_reads.size_of, rows)) <= short_reads.BATCH_BYTES + 1_000_000
    assert (len(rows), is_end) == (5, False)


@pytest.mark.parametrize("begins", [False, True])
def test_a_cursor_gives_long_rows_a_few_at_a_time(tmp_path: Path, *, begins: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        if begins:  # The writer reads, and not a reader.
            await run(session, "begin")
            await run(session, "create table t(a)")
        cursor = await session.start(await session.prepare(LONG), ())
        first = await cursor.fetch_batch(256)
        second = await cursor.fetch_batch(256)
        assert len(first) == len(second) == 5
        assert [len(await cursor.fetch(200)), len(await cursor.fetch(200))] == [200, 90]
        assert cursor.is_at_end
        assert await cursor.fetch_batch(256) == []

    play(tmp_path, scene)


def test_open_results_are_kept_up_to_a_number_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_results, "_DRAINED_BATCHES", 3)

    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await run(session, "begin")
        await session.start(await session.prepare(LONG), ())
        assert await state_of(run(session, "insert into t values (1)")) == "54000"
        await run(session, "rollback")

    play(tmp_path, scene)


def test_the_rows_of_returning_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_runner, "_RETURNED_BYTES", 5_000_000)

    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        assert len(await run(session, "insert into t values (1), (2), (3), (4) returning hex(zeroblob(500000))")) == 4
        assert await state_of(run(session, "update t set a = 9 returning hex(zeroblob(1000000))")) == "54000"
        assert await run(session, "select max(a) from t") == [(4,)]

    play(tmp_path, scene)
