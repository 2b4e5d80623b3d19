"""A transaction that is larger than an entry, on a leader with followers: all or nothing, also where a node is killed meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.sql.cluster import SETTINGS, Cluster, play, run, state_of
from tests.waiting import eventually
from triplicate.errors import SqlError
from triplicate.log.publishing.own_batches import OwnBatches
from triplicate.sql.core import batch_builder
from triplicate.sql.executor import change_capture, staged_parts
from triplicate.sql.hosting.change_feed import changes

ROWS = "with recursive c(i) as (values({first}) union all select i + 1 from c limit {count}) select i, printf('%0100d', i) from c"
COUNT = "select count(*), min(id), max(id) from t"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capture, "PIECE_BYTES", 4_000)
    monkeypatch.setattr(staged_parts, "PART_BYTES", 8_000)
    monkeypatch.setattr(batch_builder, "MAX_ENTRY_BYTES", batch_builder.ENTRY_MARGIN_BYTES + 8_000)


def rows(count: int, first: int = 1) -> str:
    return "insert into t " + ROWS.format(first=first, count=count)


def staging_ledgers(cluster: Cluster) -> int:
    found = cluster.stage.bookies.ledgers.values()
    return sum(ledger.metadata.custom.get("component") == b"staging" for ledger in found)


def test_followers_and_readers_have_it_as_one(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader = await cluster.leader()
        session, other = await leader.session(), await leader.session()
        await run(session, "create table t(id integer primary key, s text)")
        await run(session, "begin")
        await run(session, rows(500))
        await run(session, "savepoint a")
        await run(session, rows(500, 501))
        await run(session, "rollback to a")
        await run(session, rows(20, 2001))
        assert await run(other, COUNT) == [(0, None, None)]
        before = leader.position
        await run(session, "commit")
        assert leader.position > before + 5
        assert staging_ledgers(cluster) == 1
        await run(other, rows(300, 5001))  # A single statement is written in parts as well.
        assert staging_ledgers(cluster) == 2
        await cluster.start("second")
        copy = await cluster.serving("second", leader.position)
        assert await run(await copy.session(), COUNT) == [(820, 1, 5300)]
        feed = changes(cluster.client("reader"), "db", before)
        seen = 0
        async for piece in feed:
            seen += len(piece.changes)
            if piece.position == leader.position:
                break
        await feed.aclose()
        assert seen == 820

    play(tmp_path, scene)


def test_a_leader_that_is_superseded_while_it_writes_the_parts_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, resume = asyncio.Event(), asyncio.Event()
    stage = OwnBatches._stage

    async def held(self: OwnBatches, entries: object) -> object:
        staged = await stage(self, entries)  # type: ignore[arg-type]
        reached.set()
        await resume.wait()
        return staged

    async def scene(cluster: Cluster) -> None:
        leader = await cluster.leader()
        name = cluster.leader_name()
        session = await leader.session()
        await run(session, "create table t(id integer primary key, s text)")
        await cluster.start("second")
        await cluster.serving("second", leader.position)
        monkeypatch.setattr(OwnBatches, "_stage", held)
        inserting = asyncio.create_task(state_of(run(session, rows(500))))
        await reached.wait()
        monkeypatch.setattr(OwnBatches, "_stage", stage)
        await cluster.expire(name)
        following = await cluster.leader(besides=name)
        await run(await following.session(), "insert into t values(-1, 'y')")
        resume.set()
        assert await inserting in ("57P01", "08007")
        assert await run(await following.session(), COUNT) == [(1, -1, -1)]

    play(tmp_path, scene)


def test_an_error_between_the_parts_ends_the_lead_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, seen = staged_parts.StagedParts.read, 0

    def fails_once(self: staged_parts.StagedParts, index: int) -> tuple[bytes, list[bytes]]:
        nonlocal seen
        seen += 1
        if seen == 3:
            raise OSError(5, "the temporary file cannot be read")
        return read(self, index)

    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(id integer primary key, s text)")
        monkeypatch.setattr(staged_parts.StagedParts, "read", fails_once)
        assert await state_of(run(session, rows(500))) in ("57P01", "08007")
        session = await (await cluster.leader()).session()
        await eventually(lambda: seen == 3)
        while await state_of(run(session, "insert into t values(-1, 'y')")) != "":
            await asyncio.sleep(0.01)
            session = await (await cluster.leader()).session()
        assert await run(session, COUNT) == [(1, -1, -1)]
        assert staging_ledgers(cluster) == 0

    play(tmp_path, scene)


def test_the_setting_bounds_a_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("strict", replace(SETTINGS, transaction_bytes=64 * 1024))
        session = await (await cluster.leader()).session()
        await run(session, "create table t(id integer primary key, s text)")
        with pytest.raises(SqlError, match="65536 bytes") as refused:
            await run(session, rows(2_000))
        assert refused.value.sqlstate == "54000"
        await run(session, rows(300))
        assert await run(session, COUNT) == [(300, 1, 300)]

    play(tmp_path, scene, nodes=0)
