"""Database nodes: following, taking over, being deposed, starting again, diverging."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from tests.property.rowlog_workload import contents
from tests.unit.log.fake import FakeClient
from tests.unit.sql.cluster import SETTINGS, Cluster, affected, fill, play, run, state_of
from triplicate.errors import ConnectionLost, SessionExpired, SqlError
from triplicate.log import LogClientSettings, Logs, Purpose, PurposeKind
from triplicate.metadata import InjectedFault, own_paths
from triplicate.replica import Role
from triplicate.runtime import Metrics
from triplicate.sql import DatabaseNode, HostedDatabases, database_info


def test_followers_hold_the_same_and_are_read_only(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 10)
        leader = cluster.leader_name()
        for name in cluster.nodes:
            database = await cluster.caught_up(name, position)
            assert database.position == position == 11
            if name == leader:
                continue
            session = await database.session()
            assert not database.is_leader
            assert await run(session, "select count(*) from t") == [(10,)]
            assert await state_of(run(session, "insert into t(a) values(1)")) == "25006"
            assert await state_of(run(session, "begin immediate")) == "25006"
            await run(session, "begin")
            assert await run(session, "select max(a) from t") == [(9,)]
            await run(session, "commit")
            with pytest.raises(SqlError) as refused:
                await run(session, "delete from t")
            assert refused.value.hint == f"The leader is at {leader}:5432."
        same = [contents(str(tmp_path / name / "databases" / "db" / "main.db")) for name in ("n1", "n2", "n3")]
        assert same[0] == same[1] == same[2]
        status = await database_info(cluster.client("other"), "db")
        assert status.leader == leader
        assert sorted(copy.node_id for copy in status.nodes) == ["n1", "n2", "n3"]

    play(tmp_path, scene, nodes=3)


def test_a_follower_takes_over_and_the_deposed_leader_follows(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 5)
        old_name = cluster.leader_name()
        old = cluster.database(old_name)
        session = await old.session()
        await run(session, "begin")
        await run(session, "insert into t(a) values('lost')")
        # Another node takes the log while the old leader knows nothing of it.
        metadata = cluster.client("operator").metadata
        await metadata.tree.delete(f"{own_paths.database_path(metadata.own_root, 'db')}/leader")
        new = await cluster.leader(besides=old_name)
        assert await state_of(run(session, "commit")) in ("08007", "57P01")
        reason = await asyncio.wait_for(session.ended, 5)
        assert reason.sqlstate == "57P01"
        assert await state_of(run(session, "select 1")) == "57P01"
        again = await new.session()
        assert await run(again, "select count(*) from t") == [(5,)]
        await run(again, "insert into t(a) values('kept')")
        await cluster.caught_up(old_name, new.position)
        assert cluster.nodes[old_name].databases.hosted["db"].role is Role.FOLLOWER
        assert await run(await old.session(), "select a from t where id = 6") == [("kept",)]

    play(tmp_path, scene, nodes=2)


def test_a_deposed_leader_serves_no_read(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        old = await cluster.leader()
        session = await old.session()
        assert await run(session, "select count(*) from t") == [(3,)]
        # Another process recovers the log; the old leader does not know and has nothing to write.
        info = cluster.nodes["n1"].databases.hosted["db"].info
        thief = await cluster.stage.logs().acting_for(Purpose(PurposeKind.DATABASE, info.name)).writer(info.log, owner="thief")
        assert await state_of(run(session, "select count(*) from t")) == "57P01"
        await thief.close()

    play(tmp_path, scene, lease_s=0)


def test_an_unknown_outcome_is_reported_with_the_id_and_decided_by_recovery(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        database = await cluster.leader()
        session = await database.session()
        info = cluster.nodes["n1"].databases.hosted["db"].info
        thief = await cluster.stage.logs().acting_for(Purpose(PurposeKind.DATABASE, info.name)).writer(info.log, owner="thief")
        await thief.close()
        with pytest.raises(SqlError) as lost:
            await run(session, "insert into t(a) values('unknown')")
        assert lost.value.sqlstate == "08007"
        identity = int((lost.value.detail or "").rstrip(".").rsplit(" ", 1)[1])
        await asyncio.wait_for(session.ended, 5)
        await asyncio.sleep(0.02)
        again = await (await cluster.leader()).session()
        status = (await run(again, "select pg_xact_status($1)", (identity,)))[0][0]
        count = (await run(again, "select count(*) from t where a = 'unknown'"))[0][0]
        assert (status, count) == ("aborted", 0)

    play(tmp_path, scene)


def test_a_node_starts_again_from_its_local_copy(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 20)
        await cluster.nodes["n1"].stop()
        del cluster.nodes["n1"]
        node = await cluster.start("n1")
        assert node.databases.hosted["db"].start_position == position
        database = await cluster.leader()
        session = await database.session()
        assert await run(session, "select count(*) from t") == [(20,)]
        assert await affected(session, "delete from t where a < 5") == 5

    play(tmp_path, scene)


def test_a_request_id_survives_a_change_of_leader(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 1)
        session = await (await cluster.leader()).session()
        await session.set_request_id("once")
        assert await run(session, "insert into t(a) values('once') returning id") == [(2,)]
        first = cluster.leader_name()
        await cluster.nodes.pop(first).stop()
        session = await (await cluster.leader()).session()
        await session.set_request_id("once")
        assert await run(session, "insert into t(a) values('once') returning id") == [(2,)]
        assert await run(session, "select count(*) from t") == [(2,)]

    play(tmp_path, scene, nodes=2)


def damage_row(path: str) -> None:
    connection = apsw.Connection(path)
    connection.set_busy_timeout(1000)
    connection.execute("delete from t where id = 3")
    connection.close()


def test_a_wrong_copy_stops_serving_and_another_is_built_from_the_log(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 5)
        follower = next(name for name in cluster.nodes if name != cluster.leader_name())
        database = await cluster.caught_up(follower, position)
        session = await database.session()
        damage_row(database.path)
        leader = await cluster.leader()
        await run(await leader.session(), "update t set a = a + 1")
        reason = await asyncio.wait_for(session.ended, 5)
        assert reason.sqlstate == "58000"
        assert "update of 5 rows of table 't' changed 4 rows" in reason.message
        assert await state_of(database.session()) == "58000"
        again = await cluster.serving(follower, leader.position)
        assert await run(await again.session(), "select count(*), sum(a) from t") == [(5, 15)]
        aside = tmp_path / follower / "databases" / ".db.aside-1" / "main.db"
        kept = apsw.Connection(str(aside), flags=apsw.SQLITE_OPEN_READONLY)
        assert kept.execute("select count(*) from t").fetchall() == [(4,)]
        (mark,) = kept.execute("select diverged from triplicate_state").fetchall()[0]
        assert "changed 4" in str(mark)
        kept.close()

    play(tmp_path, scene, nodes=2)


def test_a_copy_is_not_read_before_it_has_caught_up_with_the_one_it_replaces(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 30)
        follower = next(name for name in cluster.nodes if name != cluster.leader_name())
        leader = await cluster.leader()
        await cluster.caught_up(follower, leader.position)
        damage_row(cluster.database(follower).path)
        await run(await leader.session(), "update t set a = 0")
        states: set[str] = set()
        while True:
            try:
                session = await cluster.database(follower).session()
                if cluster.database(follower).position >= leader.position:
                    break
                assert await run(session, "select count(*) from t") == [(30,)] or not states, "an old copy was read"
            except SqlError as error:
                states.add(error.sqlstate)
            await asyncio.sleep(0)
        assert states <= {"58000", "57P03"}

    play(tmp_path, scene, nodes=2)


def test_a_log_that_no_copy_can_follow_is_not_replayed_for_ever(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 5)
        info = cluster.nodes["n1"].databases.hosted["db"].info
        logs = cluster.stage.logs().acting_for(Purpose(PurposeKind.DATABASE, info.name))
        async with await logs.writer(info.log, owner="somebody") as writer:
            await writer.append_entry([b"garbage"])

        async def read() -> None:
            await run(await cluster.database("n1").session(), "select 1")

        path = tmp_path / "n1" / "databases"
        hosted = cluster.nodes["n1"].databases.hosted["db"]
        while not (hosted.role is Role.DIVERGED and (path / ".db.aside-1").exists()):
            # The leader learns of the other writer from an append, which a read needs once its lease is over.
            await state_of(read())
            await asyncio.sleep(0.005)
            hosted = cluster.nodes["n1"].databases.hosted["db"]
        await asyncio.sleep(1.0)
        assert cluster.nodes["n1"].databases.hosted["db"] is hosted
        assert hosted.role is Role.DIVERGED
        assert sorted(one.name for one in path.iterdir()) == [".db.aside-1", "db"]
        assert await state_of(cluster.database("n1").session()) == "58000"
        other = cluster.client("other")
        while (status := await database_info(other, "db")).nodes[0].role != "diverged":
            await asyncio.sleep(0.01)
        assert [(copy.node_id, copy.role, copy.serves) for copy in status.nodes] == [("n1", "diverged", False)]
        assert "not the log of a database" in status.nodes[0].reason
        client = cast("FakeClient", cluster.clients["n1"])
        assert gauge(client.metrics, "triplicate_database_diverged", database="db") == 1
        assert gauge(client.metrics, "triplicate_database_role", database="db", role="diverged") == 1
        assert gauge(client.metrics, "triplicate_database_role", database="db", role="leader") == 0

    play(tmp_path, scene)


def gauge(metrics: Metrics, name: str, **labels: str) -> float:
    samples = [sample for metric in metrics._registry.collect() for sample in metric.samples]
    (value,) = [sample.value for sample in samples if (sample.name, sample.labels) == (name, labels)]
    return value


def test_the_state_of_a_healthy_copy_is_in_the_metrics(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        leader = cluster.leader_name()
        (follower,) = [name for name in cluster.nodes if name != leader]
        for name, role in ((leader, "leader"), (follower, "follower")):
            metrics = cast("FakeClient", cluster.clients[name]).metrics
            assert gauge(metrics, "triplicate_database_diverged", database="db") == 0
            assert gauge(metrics, "triplicate_database_role", database="db", role=role) == 1
            assert gauge(metrics, "triplicate_database_lag", database="db") >= 0
            assert 0 <= gauge(metrics, "triplicate_database_lag_seconds", database="db") < 60

    play(tmp_path, scene, nodes=2)


def test_a_copy_that_was_given_up_for_its_place_is_verified_at_the_next_start(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 5)
        path = cluster.database("n1").path
        await cluster.nodes.pop("n1").stop()
        file = apsw.Connection(path)
        # As releases before this one wrote it.
        file.execute("update triplicate_state set diverged = 'this copy stands at 6, where the log cannot be read: OffsetGap()'")
        file.close()
        await cluster.start("n1")
        session = await (await cluster.leader()).session()
        assert await run(session, "select count(*) from t") == [(5,)]
        assert not (tmp_path / "n1" / "databases" / ".db.aside-1").exists()
        assert await run(session, "select diverged from triplicate_state") == [(None,)]

    play(tmp_path, scene)


def test_a_copy_whose_last_batch_is_not_the_logs_is_rebuilt(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 5)
        path = cluster.database("n1").path
        await cluster.nodes.pop("n1").stop()
        file = apsw.Connection(path)
        file.execute("update triplicate_state set batch = batch - 1, diverged = 'this copy stands at 6, where the log cannot be read'")
        file.close()
        await cluster.start("n1")
        session = await (await cluster.serving("n1", 6)).session()
        assert await run(session, "select count(*) from t") == [(5,)]
        assert (tmp_path / "n1" / "databases" / ".db.aside-1").exists()

    play(tmp_path, scene)


def spoil(path: Path) -> None:
    """Overwrite the header of a SQLite file."""
    data = bytearray(path.read_bytes())
    data[:100] = b"\xff" * 100
    path.write_bytes(data)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def test_a_damaged_copy_is_set_aside_and_the_other_databases_are_served(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create("other")
        await fill(cluster, 3)
        leader = await cluster.leader("other")
        await run(await leader.session(), "create table u(a)")
        path = Path(leader.path)
        for number in range(4):
            await cluster.nodes.pop("n1").stop()
            spoil(path)
            node = await cluster.start("n1")
            session = await (await cluster.serving("n1", 1 + number, "other")).session()
            assert await run(session, "select count(*) from u") == [(number,)]
            again = await (await cluster.leader("other")).session()
            await run(again, "insert into u values(1)")
            assert await run(await (await cluster.leader()).session(), "select count(*) from t") == [(3,)]
            assert node.failure is None
        kept = sorted(one.name for one in (tmp_path / "n1" / "databases").iterdir())
        assert kept == [".other.aside-1", ".other.aside-2", "db", "other"]

    play(tmp_path, scene)


class DamagedApplier:
    """Meets a page of the file that is damaged."""

    def begin(self) -> None:
        raise apsw.CorruptError("database disk image is malformed")


def test_a_copy_that_is_damaged_while_it_follows_is_set_aside(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 5)
        follower = next(name for name in cluster.nodes if name != cluster.leader_name())
        database = await cluster.caught_up(follower, position)
        cast("Any", database)._copy._applier = DamagedApplier()
        leader = await cluster.leader()
        await run(await leader.session(), "insert into t(a) values(7)")
        again = await cluster.serving(follower, leader.position)
        assert again is not database
        assert await run(await again.session(), "select count(*) from t") == [(6,)]

    play(tmp_path, scene, nodes=2)


def test_a_failed_copy_is_opened_again_and_clients_hear_why(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 5)
        await cluster.create("other")
        await cluster.leader("other")
        database = await cluster.leader()
        session = await database.session()

        def defect(*_: object) -> None:
            raise RuntimeError("a defect of ours")

        cast("Any", database.leadership).on_commit = defect
        assert await state_of(run(session, "insert into t(a) values(8)")) in ("08007", "57P01")
        while (told := database.unusable) is None or "has failed" not in told.message:
            await asyncio.sleep(0.001)
        assert told.sqlstate == "57P03"
        assert told.message.endswith("has failed and is opened again in a moment: a defect of ours")
        again = await cluster.leader()
        assert again is not database
        assert again.position >= position
        assert await run(await again.session(), "select count(*) from t") in ([(5,)], [(6,)])
        assert cluster.nodes["n1"].failure is None
        assert (await cluster.leader("other")).is_leader

    play(tmp_path, scene)


def test_lost_connections_to_the_metadata_end_no_node(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        leader = cluster.leader_name()
        lost = InjectedFault(raise_before=ConnectionLost("the connection broke before the answer came"))
        cluster.stage.store.fault = lambda session_id, operation, path: lost if "/databases" in path else None
        cluster.wake_watches()
        await run(await cluster.database(leader).session(), "insert into t(a) values(3)")
        await asyncio.sleep(0.3)
        await run(await cluster.database(leader).session(), "insert into t(a) values(4)")
        for name in cluster.nodes:
            await cluster.caught_up(name, cluster.database(leader).position)
        assert [node.failure for node in cluster.nodes.values()] == [None] * 3
        cluster.stage.store.fault = None
        await cluster.create("later")
        await cluster.leader("later")

    play(tmp_path, scene, nodes=3)


def test_a_node_starts_while_the_metadata_are_away_and_its_start_can_be_cancelled(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        await cluster.nodes.pop("n1").stop()
        lost = InjectedFault(raise_before=ConnectionLost("away"))
        cluster.stage.store.fault = lambda session_id, operation, path: lost
        loop = asyncio.get_running_loop()
        starting = loop.create_task(cluster.start("n1"))
        await asyncio.sleep(0.2)
        assert not starting.done()
        assert cluster.databases["n1"].starting
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(starting, 5)
        starting = loop.create_task(cluster.start("n1"))
        await asyncio.sleep(0.2)
        cluster.stage.store.fault = None
        node = await starting
        assert not node.databases.starting
        assert node.databases.hosted["db"].start_position == 4

    play(tmp_path, scene)


def test_one_unreadable_database_does_not_hinder_the_others(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        metadata = cluster.client("operator").metadata
        await metadata.tree.create(own_paths.database_path(metadata.own_root, "a"), b'{"v":99}', parents=True)
        await cluster.create("second")
        assert (await cluster.leader("second")).is_leader
        assert cluster.nodes["n1"].databases.names() == ["db", "second"]

    play(tmp_path, scene)


def small_disk(connection: apsw.Connection) -> None:
    """SQLite says of a file that has reached this size that the disk is full."""
    connection.execute("pragma max_page_count = 60")


def test_a_leader_whose_disk_is_full_leaves_the_lead_to_a_peer(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        full = replace(SETTINGS, node_id="n1", directory=str(tmp_path / "n1"))
        await cluster.start_with("n1", full, setup=small_disk)
        await fill(cluster, 1)
        await cluster.start("n2")
        leader = cluster.database("n1")
        await cluster.caught_up("n2", leader.position)
        await cluster.stands_for_election("n2")
        session = await leader.session()
        kept = 1
        states: list[str] = []
        while not states or states[-1] == "53100":
            states.append(await state_of(run(session, "insert into t(a) values(zeroblob(20000))")))
            if states[-1] == "":
                kept += 1
                states.clear()
        # Which of the two comes first is SQLite's choice: it may roll back on its own.
        assert states in (["57P01"], ["53100", "57P01"])
        again = await cluster.leader(besides="n1")
        session = await again.session()
        for _ in range(20):
            await run(session, "insert into t(a) values(zeroblob(20000))")
        assert await run(session, "select count(*) from t") == [(kept + 20,)]
        assert again.is_leader
        assert not leader.is_leader
        assert cluster.nodes["n1"].failure is None

    play(tmp_path, scene, nodes=0)


def test_an_interactive_transaction_that_meets_a_full_disk_ends_the_lead_too(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start_with("n1", replace(SETTINGS, node_id="n1", directory=str(tmp_path / "n1")), setup=small_disk)
        await fill(cluster, 1)
        await cluster.start("n2")
        leader = cluster.database("n1")
        await cluster.stands_for_election("n2")
        session = await leader.session()
        await run(session, "begin")
        state = ""
        while not state:
            state = await state_of(run(session, "insert into t(a) values(zeroblob(20000))"))
        assert state == "53100"
        await run(session, "rollback")
        assert await state_of(run(session, "insert into t(a) values(1)")) == "57P01"
        again = await cluster.leader(besides="n1")
        assert await run(await again.session(), "select count(*) from t") == [(1,)]

    play(tmp_path, scene, nodes=0)


@pytest.mark.parametrize(("room", "leads"), [(64 << 20, True), (16 << 20, False)])
def test_a_statement_whose_temporary_files_find_no_room_fails_alone(tmp_path: Path, room: int, leads: bool) -> None:
    """SQLite reports the same error as for its file; there is room for that."""

    async def scene(cluster: Cluster) -> None:
        await cluster.start_with("n1", replace(SETTINGS, node_id="n1", directory=str(tmp_path / "n1")), setup=without_room)
        await fill(cluster, 1)
        session = await cluster.database("n1").session()
        await run(session, "begin")
        await run(session, "insert into t(a) values(1)")
        assert await state_of(run(session, "insert into t(a) select sorted(a) from t")) == "53100"
        await run(session, "rollback")
        assert await state_of(run(session, "insert into t(a) values(2)")) == ("" if leads else "57P01")

    def without_room(connection: apsw.Connection) -> None:
        def find_no_room(*_values: object) -> None:
            raise apsw.exception_for(apsw.SQLITE_FULL)

        connection.create_scalar_function("sorted", find_no_room)
        connection.execute(f"pragma max_page_count = {room // 4096}").fetchall()

    play(tmp_path, scene, nodes=0)


def test_databases_made_later_are_hosted_too(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create("second")
        database = await cluster.leader("second")
        await run(await database.session(), "create table only_here(a)")
        other = await (await cluster.leader("db")).session()
        assert await state_of(run(other, "select * from only_here")) == "42P01"
        assert cluster.nodes["n1"].databases.names() == ["db", "second"]
        assert await state_of(cluster.create("second")) == "42P04"
        assert await state_of(database_info(cluster.client("other"), "third")) == "3D000"

    play(tmp_path, scene)


def test_a_node_that_was_declared_dead_stops_and_says_so(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        first = cluster.leader_name()
        session = await cluster.database(first).session()
        await cluster.expire(first)
        error = await asyncio.wait_for(cluster.nodes[first].failed(), 5)
        assert isinstance(error, SessionExpired)
        assert (await asyncio.wait_for(session.ended, 5)).sqlstate == "57P01"
        again = await (await cluster.leader(besides=first)).session()
        assert await run(again, "select count(*) from t") == [(3,)]

    play(tmp_path, scene, nodes=2)


def test_a_session_with_a_snapshot_can_be_closed_after_its_node_has_stopped(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 300)
        session = await cluster.database(cluster.leader_name()).session()
        await run(session, "begin")
        cursor = await session.start(await session.prepare("select a from t"), ())
        assert len(await cursor.fetch(10)) == 10
        await cluster.nodes[cluster.leader_name()].stop()
        with pytest.raises(SqlError) as refused:
            await run(session, "select 1")
        assert refused.value.sqlstate == "57P01"
        await cursor.close()
        await session.close()
        assert not [found for found in apsw.connections() if found.filename.startswith(str(tmp_path))]

    play(tmp_path, scene)


def test_a_node_clears_away_what_logs_leave_behind(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        janitor = LogClientSettings(janitor_interval_s=0.05, janitor_pause_s=0.0, orphan_grace_s=0.0)
        client = cluster.client("n2")
        cluster.logs["n2"] = Logs(client, janitor)
        facts = {"application": b"triplicate", "component": b"log", "log": b"gone"}
        orphan = await client.create(custom=facts)
        settings = replace(SETTINGS, node_id="n2", directory=str(tmp_path / "n2"))
        databases = cluster.databases["n2"] = HostedDatabases()
        node = await DatabaseNode.start(client.host, client, cluster.logs["n2"], settings, databases, ("n2", 5432))
        cluster.nodes["n2"] = node
        while orphan.ledger_id in cluster.stage.bookies.ledgers:
            await asyncio.sleep(0.02)
        assert node.failure is None
        assert (await (await cluster.leader()).session()) is not None

    play(tmp_path, scene, nodes=1)
