"""Snapshots of databases: made while writers go on, loaded by new and lost copies, and the log truncated behind them."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from tests.property.snapshot_workload import IDENTITY, snapshot_and_restore
from tests.unit.sql.cluster import Cluster, affected, play, run, state_of
from tests.unit.sql.snapshot_rig import (
    COUNTER,
    EAGER,
    ON_REQUEST,
    copied_contents,
    door_of,
    file_of,
    filled,
    keeper_of,
    leader_log,
    lose,
    make_snapshots,
    snapshots_listed,
    truncate,
    truncated,
    write_rows,
)
from tests.waiting import eventually
from triplicate.cli.data_commands.snapshot_requests import request_snapshot, snapshot_facts, verdict
from triplicate.errors import ConnectionLost, CorruptionError, Diverged, EnvironmentFault, ReadFailed
from triplicate.log import CHUNK_BYTES, Snapshot, SnapshotHeader, SnapshotState
from triplicate.metadata import own_paths
from triplicate.replica import Candidate, Role
from triplicate.replica.election import encode_candidate
from triplicate.runtime import Metrics
from triplicate.sql.storage.sqlite_copy import quick_check
from triplicate.sql.storage.sqlite_file import open_store


def test_a_new_node_loads_a_snapshot_when_the_log_has_been_truncated(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for node in ("n1", "n2"):
            await cluster.start(node, EAGER)
        leader = await cluster.leader()
        await filled(cluster)
        session = await leader.session()
        await run(session, "begin")
        await run(session, "insert into t(v) values('x')")
        ((number,),) = await run(session, "select pg_current_xact_id()")
        await run(session, "commit")
        await snapshots_listed(cluster, 1, at=leader.position)
        await write_rows(leader, 3)
        good = await snapshots_listed(cluster, 2, at=leader.position)
        assert await truncated(cluster, good[0].position) == good[0].position
        await write_rows(leader, 2)
        third = await cluster.start("n3", ON_REQUEST)
        copy = await cluster.caught_up("n3", leader.position)
        assert third.databases.hosted["db"].role is Role.FOLLOWER
        name = cluster.leader_name()
        assert copied_contents(file_of(cluster, "n3"), tmp_path) == copied_contents(file_of(cluster, name), tmp_path)
        other = await copy.session()
        assert await run(other, "select pg_xact_status(?)", (number,)) == [("committed",)]
        assert await run(other, "select count(*) from triplicate_requests where request_id = 'request-1'") == [(1,)]

    play(tmp_path, scene, nodes=0)


def test_a_database_whose_nodes_lost_every_disk_comes_back_from_the_bookies_and_leads(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for node in ("n1", "n2"):
            await cluster.start(node, EAGER)
        leader = await cluster.leader()
        await filled(cluster)
        await snapshots_listed(cluster, 1, at=leader.position)
        await write_rows(leader, 3)
        good = await snapshots_listed(cluster, 2, at=leader.position)
        await truncated(cluster, good[0].position)
        await write_rows(leader, 2)
        before = copied_contents(file_of(cluster, cluster.leader_name()), tmp_path)
        for lost in ("n1", "n2"):
            await lose(cluster, lost)
        await cluster.start("n1", ON_REQUEST)
        back = await cluster.leader()
        after = copied_contents(file_of(cluster, "n1"), tmp_path)
        assert {name: value for name, value in after.items() if name != "state"} == {
            name: value for name, value in before.items() if name != "state"
        }
        session = await back.session()
        await session.set_request_id("request-1")
        assert await affected(session, "insert into k values('d', 4)") == 1
        assert await run(session, "select count(*) from k where name = 'd'") == [(1,)]
        assert await affected(session, "insert into t(v) values('on')") == 1
        assert await run(session, "select rowid from f where f match 'gamma'") == [(2,)]
        await session.close()

    play(tmp_path, scene, nodes=0)


def test_writers_go_on_while_a_snapshot_is_made_and_it_is_of_one_position(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", replace(ON_REQUEST, snapshot_rate_bytes_per_s=512 * 1024))
        leader = await cluster.leader()
        session = await leader.session()
        await run(session, "create table t(id integer primary key, v text)")
        await run(session, "create table total(n int)")
        await run(session, "insert into total values(0)")
        await run(
            session,
            f"insert into t(v) select hex(randomblob(2000)) from ({COUNTER})",
        )
        await run(session, "create table batch(n)")
        copying = asyncio.get_running_loop().create_task(leader.snapshots.copy(512 * 1024))
        written = 0
        while not copying.done():
            await run(session, "begin")
            await run(session, "insert into t(v) values(hex(randomblob(1000)))")
            await run(session, "update total set n = n + 1")
            await run(session, "commit")
            written += 1
        copy = await copying
        try:
            assert written > 10
            assert copy.position < leader.position
            path = tmp_path / "copied.db"
            content = b""
            while len(content) < copy.size_bytes:
                content += await copy.read(len(content), 1 << 20)
            path.write_bytes(content)

            with apsw.Connection(str(path)) as connection:
                assert connection.execute("select position from triplicate_state").fetchall() == [(copy.position,)]
                ((rows, total),) = connection.execute("select (select count(*) from t) - 500, (select n from total)").fetchall()
                assert rows == total
        finally:
            await copy.discard()
        assert not [name.name for name in file_of(cluster, "n1").parent.iterdir() if "snapshot" in name.name]

    play(tmp_path, scene, nodes=0)


def test_a_damaged_snapshot_is_refused_marked_and_the_older_one_loaded(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        good = await make_snapshots(cluster, leader, 2)
        await truncate(cluster, good[0].position)
        ledger = cluster.stage.bookies.ledgers[good[1].ledger_id]
        payload = bytearray(ledger.entries[1].payload)
        payload[len(payload) // 2] ^= 0x10
        ledger.entries[1] = replace(ledger.entries[1], payload=bytes(payload))
        await cluster.start("n2", ON_REQUEST)
        await cluster.caught_up("n2", leader.position)
        assert copied_contents(file_of(cluster, "n2"), tmp_path) == copied_contents(file_of(cluster, "n1"), tmp_path)
        listed = await (await door_of(cluster)).read()
        assert [item.state for item in listed.snapshots] == [SnapshotState.GOOD, SnapshotState.DAMAGED]
        assert listed.snapshots[1].reason.startswith("n2: ")

    play(tmp_path, scene, nodes=0)


def test_a_snapshot_whose_content_is_no_sound_copy_is_refused_and_marked(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        copy = await leader.snapshots.copy(0)
        content = bytearray(await copy.read(0, copy.size_bytes))
        await copy.discard()
        # The second page is a b-tree: SQLite's check finds that its cells are nonsense.
        content[4096 : 4096 + 8] = bytes([13, 0, 0, 255, 255, 0, 0, 0])
        good = await make_snapshots(cluster, leader, 1)
        await list_content(cluster, bytes(content), leader.position, good[-1].snapshot_id)
        await truncate(cluster, good[0].position)
        await cluster.start("n2", ON_REQUEST)
        await cluster.caught_up("n2", leader.position)
        listed = await (await door_of(cluster)).read()
        assert [item.state for item in listed.snapshots] == [SnapshotState.GOOD, SnapshotState.DAMAGED]
        assert "sound copy" in listed.snapshots[1].reason

    play(tmp_path, scene, nodes=0)


def test_a_snapshot_that_stands_elsewhere_than_listed_is_refused(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        copy = await leader.snapshots.copy(0)
        content = await copy.read(0, copy.size_bytes)
        await copy.discard()
        good = await make_snapshots(cluster, leader, 1)
        await list_content(cluster, content, leader.position, good[-1].snapshot_id)
        await truncate(cluster, good[0].position)
        await cluster.start("n2", ON_REQUEST)
        await cluster.caught_up("n2", leader.position)
        assert "its content has position" in (await (await door_of(cluster)).read()).snapshots[1].reason

    play(tmp_path, scene, nodes=0)


async def list_content(cluster: Cluster, content: bytes, position: int, after: str) -> None:
    """List a snapshot of any content, as a node gone mad might."""
    door = await door_of(cluster)
    log_id, compression = await door.header_fields()
    (newest,) = (await door.read()).good
    header = SnapshotHeader(
        door.new_id(), log_id, position, newest.epoch, newest.time_ms, "sql", "sqlite", newest.identity, "mad", compression, {}
    )
    async with await door.writer(header) as writer:
        for start in range(0, len(content), CHUNK_BYTES):
            await writer.append(content[start : start + CHUNK_BYTES])
        snapshot = await writer.finish()
    assert await door.publish(snapshot, after)


def test_the_log_is_truncated_behind_the_older_of_the_last_two(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", EAGER)
        leader = await cluster.leader()
        session = await leader.session()
        await run(session, "create table t(id integer primary key, v text)")
        (first,) = await snapshots_listed(cluster, 1, at=leader.position)
        await asyncio.sleep(0.1)
        log = await leader_log(cluster)
        assert (await cluster.logs["looker"].head(log)).first_offset == 0
        await write_rows(leader, 1)
        good = await snapshots_listed(cluster, 2, at=leader.position)
        assert await truncated(cluster, first.position) == good[0].position
        await cluster.logs["looker"].snapshots(log).mark_damaged(good[1].snapshot_id, "for the test")
        while len(again := (await cluster.logs["looker"].snapshots(log).read()).good) < 2:
            await asyncio.sleep(0.005)
        assert again[0] == good[0]

    play(tmp_path, scene, nodes=0)


def test_a_crash_before_the_listing_leaves_an_orphan_that_the_sweep_finds(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        door = await door_of(cluster)
        made: list[int] = []

        async def never(snapshot: Snapshot, after: str | None) -> bool:
            made.append(snapshot.ledger_id)
            raise ConnectionLost("the node dies here")

        keeper = keeper_of(cluster, "n1")
        keeper._log_snapshots.publish = never  # type: ignore[method-assign]
        await door.want(leader.position)
        await eventually(lambda: bool(made))
        await cluster.nodes["n1"].stop()
        assert (await door.read()).snapshots == ()
        assert made[0] in cluster.stage.bookies.ledgers
        logs = cluster.logs["looker"]
        cluster.stage.wall_us = cluster.stage.host.clock.wall_us() + 86_401 * 1_000_000
        swept = await logs.sweep(door.name)
        assert swept["ledgers"] >= 1
        assert made[0] not in cluster.stage.bookies.ledgers

    play(tmp_path, scene, nodes=0)


def test_of_two_nodes_that_make_a_snapshot_at_once_one_is_listed(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for node in ("n1", "n2"):
            await cluster.start(node, ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        for node in ("n1", "n2"):
            await cluster.caught_up(node, leader.position)
        before = set(cluster.stage.bookies.ledgers)
        keepers = [keeper_of(cluster, node) for node in ("n1", "n2")]
        await asyncio.gather(*(keeper._attempt("for the test") for keeper in keepers))
        listed = await (await door_of(cluster)).read()
        assert len(listed.snapshots) == 1
        assert set(cluster.stage.bookies.ledgers) - before == {listed.snapshots[0].ledger_id}

    play(tmp_path, scene, nodes=0)


def test_a_claim_keeps_a_second_node_from_wasted_work(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for node in ("n1", "n2"):
            await cluster.start(node, ON_REQUEST)
        doors = [keeper_of(cluster, node)._log_snapshots for node in ("n1", "n2")]
        assert await doors[0].claim()
        assert await doors[0].claim()
        assert not await doors[1].claim()
        await doors[1].release()
        assert not await doors[1].claim()
        await doors[0].release()
        assert await doors[1].claim()

    play(tmp_path, scene, nodes=0)


def test_a_follower_makes_the_snapshot_where_there_is_one(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for node in ("n1", "n2", "n3"):
            await cluster.start(node, ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        for node in ("n1", "n2", "n3"):
            await cluster.caught_up(node, leader.position)
        good = await make_snapshots(cluster, leader, 2)
        assert {snapshot.node for snapshot in good} <= {"n1", "n2", "n3"} - {cluster.leader_name()}

    play(tmp_path, scene, nodes=0)


def test_a_copy_is_replaced_beneath_readers_whose_sessions_end(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        await make_snapshots(cluster, leader, 1)
        (snapshot,) = (await (await door_of(cluster)).read()).good
        await cluster.start("n2", ON_REQUEST)
        follower = await cluster.caught_up("n2", leader.position)
        session = await follower.session()
        await run(session, "begin")
        assert await run(session, "select count(*) from t") == [(1,)]
        cluster.nodes["n2"].databases.hosted["db"].replica._snapshots = None
        async with (await door_of(cluster)).open(snapshot) as reader:
            assert await follower.snapshots.restore(snapshot, await reader.header(), reader.chunks()) == snapshot.position
        assert await state_of(run(session, "select count(*) from t")) == "57P01"
        again = await follower.session()
        assert await run(again, "select count(*) from t") == [(1,)]
        assert [name.name for name in file_of(cluster, "n2").parent.iterdir() if ".re" in name.name or ".snap" in name.name] == []

    play(tmp_path, scene, nodes=0)


def test_leftovers_of_a_crash_are_removed_and_an_old_write_ahead_log_never_meets_a_new_file(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        await make_snapshots(cluster, leader, 1)
        position = leader.position
        await cluster.start("n2", ON_REQUEST)
        await cluster.caught_up("n2", position)
        path = file_of(cluster, "n2")
        await cluster.nodes.pop("n2").stop()
        for suffix in (".snapshot", ".restore", ".restore-wal", ".replaced"):
            Path(f"{path}{suffix}").write_bytes(b"left")
        # As after a crash between the two renames: the old file is gone, its write-ahead log is not.
        path.rename(f"{path}.replaced")
        Path(f"{path}-wal").write_bytes(b"old")
        await cluster.start("n2", ON_REQUEST)
        await cluster.caught_up("n2", position)
        assert copied_contents(path, tmp_path) == copied_contents(file_of(cluster, "n1"), tmp_path)
        names = {name.name for name in path.parent.iterdir()}
        assert names <= {"main.db", "main.db-wal", "main.db-shm"}

    play(tmp_path, scene, nodes=0)


def test_no_snapshot_is_made_of_a_copy_that_is_wrong_or_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        disk = type(leader._host.disk)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "free_space", lambda self, path: (1024, 1 << 40))
            with pytest.raises(EnvironmentFault, match="1024 are free: make room"):
                await leader.snapshots.copy(0)
        with monkeypatch.context() as patch:
            patch.setattr(leader.snapshots, "_wal_limit_bytes", -1)
            with pytest.raises(EnvironmentFault, match="write-ahead log"):
                await leader.snapshots.copy(0)
        connection = apsw.Connection(str(file_of(cluster, "n1")))
        connection.execute("update triplicate_state set diverged = 'for the test'")
        with pytest.raises(Diverged, match="for the test"):
            await leader.snapshots.copy(0)
        connection.execute("update triplicate_state set diverged = null")
        connection.close()
        await (await leader.snapshots.copy(0)).discard()
        assert [name.name for name in file_of(cluster, "n1").parent.iterdir() if ".snap" in name.name] == []

    play(tmp_path, scene, nodes=0)


def test_a_new_node_reads_a_short_log_rather_than_a_snapshot_and_loads_one_instead_of_a_long_log(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        await make_snapshots(cluster, leader, 1)
        await cluster.start("n2", ON_REQUEST)
        await cluster.caught_up("n2", leader.position)
        assert cluster.nodes["n2"].databases.hosted["db"].replica.start_position == 0
        session = await leader.session()
        for _ in range(60):
            await run(session, "update t set v = hex(randomblob(30000))")
        await make_snapshots(cluster, leader, 1)
        await cluster.start("n3", ON_REQUEST)
        keeper = keeper_of(cluster, "n3")
        await cluster.caught_up("n3", leader.position)
        await eventually(lambda: keeper.loaded != 0)
        assert keeper_of(cluster, "n2").loaded == 0

    play(tmp_path, scene, nodes=0)


def test_other_nodes_go_on_when_a_snapshot_cannot_be_read_at_the_moment(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        good = await make_snapshots(cluster, leader, 2)
        await truncate(cluster, good[0].position)
        client = cluster.client("n2")
        opening = client.open
        refused: list[int] = []

        async def unreachable(ledger_id: int, **options: Any) -> Any:
            if ledger_id in {snapshot.ledger_id for snapshot in good} and len(refused) < 4:
                refused.append(ledger_id)
                raise ReadFailed("no bookie answers")
            return await opening(ledger_id, **options)

        client.open = unreachable  # type: ignore[method-assign]
        await cluster.start("n2", ON_REQUEST, client)
        await cluster.caught_up("n2", leader.position)
        assert len(refused) == 4
        assert len((await (await door_of(cluster)).read()).good) == 2

    play(tmp_path, scene, nodes=0)


def test_a_snapshot_that_the_bookies_do_not_give_back_is_not_listed(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        client = cluster.client("n1")
        create = client.create
        spoiled: list[int] = []

        async def create_spoiled(**options: Any) -> Any:
            appender = await create(**options)
            if options["custom"]["component"] == b"snapshot" and not spoiled:
                spoiled.append(appender.ledger_id)
                close = appender.close

                async def spoil() -> int:
                    entries = cluster.stage.bookies.ledgers[appender.ledger_id].entries
                    entries[1] = replace(entries[1], payload=entries[1].payload[:-1])
                    return int(await close())

                appender.close = spoil  # type: ignore[method-assign, assignment]
            return appender

        client.create = create_spoiled  # type: ignore[method-assign]
        await cluster.start("n1", replace(ON_REQUEST, snapshot_interval_s=0.0), client)
        leader = await cluster.leader()
        await filled(cluster)
        (good,) = await make_snapshots(cluster, leader, 1)
        assert len(spoiled) == 1
        assert good.ledger_id != spoiled[0]
        assert spoiled[0] not in cluster.stage.bookies.ledgers

    play(tmp_path, scene, nodes=0)


def test_the_write_ahead_log_of_the_replaced_file_is_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    open_store(str(source), IDENTITY)
    with apsw.Connection(str(source)) as connection:
        connection.execute("create table t(v); insert into t values('new')")
    open_store(str(tmp_path / "old.db"), IDENTITY)
    old = apsw.Connection(str(tmp_path / "old.db"))
    old.execute("create table t(v); insert into t values('old')")
    # As a killed process leaves them: nothing was copied back into the file.
    for suffix in ("", "-wal"):
        shutil.copy(f"{tmp_path / 'old.db'}{suffix}", f"{target}{suffix}")
    old.close()
    snapshot_and_restore(str(source), target, lambda: None)
    with apsw.Connection(str(target)) as connection:
        assert connection.execute("select v from t").fetchall() == [("new",)]
        assert quick_check(connection) == []


def test_an_attempt_that_fails_is_counted_and_made_again(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", replace(ON_REQUEST, snapshot_interval_s=0.0))
        leader = await cluster.leader()
        await filled(cluster)
        copy = leader.snapshots.copy
        failures = [EnvironmentFault("no room"), CorruptionError("not sound")]

        async def failing(rate_bytes_per_s: int) -> Any:
            if failures:
                raise failures.pop()
            return await copy(rate_bytes_per_s)

        leader.snapshots.copy = failing  # type: ignore[method-assign]
        await make_snapshots(cluster, leader, 1)
        assert failures == []
        metrics = cast("Metrics", cluster.logs["n1"].client.metrics)
        log = await leader_log(cluster)
        # It is listed before it is counted.
        published = f'triplicate_snapshots_total{{log="{log}",outcome="published"}} 1.0'
        await eventually(lambda: published in metrics.expose().decode())
        assert f'triplicate_snapshots_total{{log="{log}",outcome="failed"}} 2.0' in metrics.expose().decode()

    play(tmp_path, scene, nodes=0)


def test_a_request_that_nobody_fulfils_in_time_stays(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        door = await door_of(cluster)
        assert await request_snapshot(door, 0, 0.0) is None
        assert await request_snapshot(door, 0, 0.05) is None
        assert (await door.read()).wanted == 0
        await cluster.start("n1", ON_REQUEST)
        made = await request_snapshot(door, 0, 10.0)
        assert made is not None
        assert await verdict(door, made) == "verified"
        entries = cluster.stage.bookies.ledgers[made.ledger_id].entries
        entries[1] = replace(entries[1], payload=entries[1].payload[:-1])
        assert (await verdict(door, made)).startswith("damaged: ")
        await door.mark_damaged(made.snapshot_id, "for the test")
        assert await verdict(door, (await door.read()).snapshots[0]) == "damaged: for the test"
        assert snapshot_facts(made)["position"] == made.position

    play(tmp_path, scene, nodes=0)


def test_the_log_stays_as_long_as_readers_of_changes_may_be_away(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", replace(EAGER, snapshot_keep_log_s=3600.0))
        leader = await cluster.leader()
        await filled(cluster)
        await snapshots_listed(cluster, 1, at=leader.position)
        await write_rows(leader, 1)
        good = await snapshots_listed(cluster, 2, at=leader.position)
        keeper, log = keeper_of(cluster, "n1"), await leader_log(cluster)
        await keeper._truncate()
        assert (await cluster.logs["n1"].head(log)).first_offset == 0
        keeper._settings = replace(keeper._settings, keep_log_s=0.0)
        await keeper._truncate()
        assert (await cluster.logs["n1"].head(log)).first_offset == good[0].position

    play(tmp_path, scene, nodes=0)


def test_a_node_that_pauses_after_a_failure_keeps_nobody_from_making_a_snapshot(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        failed: list[int] = []

        async def failing(rate_bytes_per_s: int) -> Any:
            failed.append(rate_bytes_per_s)
            raise EnvironmentFault("no room")

        leader.snapshots.copy = failing  # type: ignore[method-assign]
        door, keeper = await door_of(cluster), keeper_of(cluster, "n1")
        await door.want(leader.position)
        await eventually(lambda: bool(failed))
        async with asyncio.timeout(5):
            while keeper._turn.locked() or not await door.claim():
                await asyncio.sleep(0.005)

    play(tmp_path, scene, nodes=0)


def test_nobody_waits_for_a_snapshot_of_a_copy_that_is_not_served(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        tree, path = cluster.client("n0").metadata.tree, own_paths.database_path(cluster.client("n0").metadata.own_root, "db")
        await tree.create(f"{path}/candidates/n0", encode_candidate(Candidate("n0", "", 10**6, Role.DIVERGED.value)), parents=True)
        await cluster.start("n1", EAGER)
        await cluster.leader()
        await filled(cluster)
        await snapshots_listed(cluster, 1)

    play(tmp_path, scene, nodes=0)
