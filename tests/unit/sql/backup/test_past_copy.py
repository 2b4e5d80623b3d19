"""A copy of a database as it was at a position, at a time, or behind a transaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sql.backup.past_rig import STATEMENTS, content_of, past_of, written
from tests.unit.sql.cluster import Cluster, play, run
from tests.unit.sql.snapshot_rig import door_of, filled, leader_log, make_snapshots, snapshots_listed, truncate
from triplicate.errors import NotKept
from triplicate.log.writing.idle_noop_timer import IdleNoopTimer
from triplicate.sql import decode_header
from triplicate.sql.backup.core.target import AtPosition, AtTime, AtTransaction


def test_a_copy_is_as_the_database_was_behind_each_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        history = await written(await cluster.leader())
        past = await past_of(cluster)
        for moment in history.moments:
            for target in (AtPosition(moment.position), AtTransaction(moment.transaction_id)):
                path = tmp_path / "past.db"
                state = await past.make(target, str(path))
                assert state.position == moment.position
                assert content_of(path) == moment.content
                path.unlink()
        assert (await past.make(None, str(tmp_path / "end.db"))).position == history.moments[-1].position

    play(tmp_path / "nodes", scene)


def test_a_copy_begins_with_the_newest_snapshot_that_is_not_beyond_the_target(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        history = await written(database)
        await (await door_of(cluster)).want(database.position)
        (snapshot,) = await snapshots_listed(cluster, 1)
        past = await past_of(cluster)
        await truncate(cluster, snapshot.position)
        path = tmp_path / "past.db"
        assert (await past.make(AtPosition(snapshot.position), str(path))).position == snapshot.position
        assert content_of(path) == history.moments[-1].content
        for target in (AtPosition(1), AtTransaction(history.moments[0].transaction_id), AtTime(0)):
            with pytest.raises(NotKept, match=f"the oldest that is kept is position {snapshot.position}"):
                await past.make(target, str(tmp_path / "other.db"))
        assert not (tmp_path / "other.db").exists()
        session = await database.session()
        await run(session, "insert into t(v) values('four')")
        await session.close()
        assert (await past.make(None, str(tmp_path / "end.db"))).position == snapshot.position + 1
        assert await leader_log(cluster)

    play(tmp_path / "nodes", scene)


def test_a_copy_begins_with_the_older_snapshot_where_the_newest_is_lost(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        await filled(cluster)
        good = await make_snapshots(cluster, database, 2)
        await truncate(cluster, good[0].position)
        past = await past_of(cluster)
        await cluster.client("looker").delete(good[1].ledger_id)
        path = tmp_path / "past.db"
        assert (await past.make(None, str(path))).position == database.position == good[1].position
        with pytest.raises(NotKept, match=f"position {good[0].position}"):
            await past.make(AtPosition(good[0].position - 1), str(tmp_path / "other.db"))
        assert not (tmp_path / "other.db").exists()

    play(tmp_path / "nodes", scene)


def test_a_time_leads_to_the_last_transaction_that_is_not_later(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        history = await written(database, STATEMENTS[:4])
        await (await door_of(cluster)).want(database.position)
        await snapshots_listed(cluster, 1)
        history.moments += (await written(database, STATEMENTS[4:])).moments
        past = await past_of(cluster)
        times = [decode_header(frame.preamble).time_ms async for frame in past.frames(0, database.position)]
        assert len(times) == len(history.moments) == len((await past.kept()).bases) * 4
        for moment_ms in sorted({*times, *(time - 1 for time in times[1:])}):
            expected = sum(time <= moment_ms for time in times)
            assert await past.resolve(AtTime(moment_ms)) == expected
        path = tmp_path / "past.db"
        await past.make(AtTime(times[2]), str(path))
        assert content_of(path) == history.moments[sum(time <= times[2] for time in times) - 1].content
        with pytest.raises(NotKept, match="lies ahead"):
            await past.resolve(AtTime(2**42))

    play(tmp_path / "nodes", scene)


def test_a_copy_has_what_was_acknowledged_however_late_the_leader_makes_it_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_long(timer: IdleNoopTimer, longest_s: float) -> None:
        timer._usual_s = 1.0

    monkeypatch.setattr(IdleNoopTimer, "wait_for_entries", wait_long)

    async def scene(cluster: Cluster) -> None:
        history = await written(await cluster.leader())
        last = history.moments[-1]
        past = await past_of(cluster)
        state = await past.make(None, str(tmp_path / "end.db"))
        assert (state.position, content_of(tmp_path / "end.db")) == (last.position, last.content)
        session = await (await cluster.leader()).session()
        await run(session, "insert into t(v) values('late')")
        await session.close()
        now_ms = cluster.client("clock").host.clock.wall_us() // 1000
        assert await past.resolve(AtTime(now_ms)) == last.position + 1

    play(tmp_path / "nodes", scene)
