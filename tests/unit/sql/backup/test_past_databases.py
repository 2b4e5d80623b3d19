"""Sessions that read a database as it was."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.unit.sql.backup.past_rig import command_on, past_databases, written
from tests.unit.sql.cluster import SETTINGS, Cluster, play, run, state_of
from tests.unit.sql.role_rig import command, grant, grant_create, session_of, with_roles
from tests.unit.sql.snapshot_rig import door_of, snapshots_listed, truncate
from triplicate.errors import CorruptionError, Diverged, EnvironmentFault, SqlError
from triplicate.sql import SqlDatabase
from triplicate.sql.backup.core.record_file import BatchFrame
from triplicate.sql.backup.core.target import AtPosition, time_text
from triplicate.sql.backup.past_copy import PastCopies
from triplicate.sql.core.rights import Action
from triplicate.sql.core.role_commands import AlterRole
from triplicate.sql.storage.sqlite_copy import SqliteBackup
from triplicate.sql.storage.sqlite_snapshots import SqlSnapshots


def files(cluster: Cluster, node: str = "n1") -> list[str]:
    folder = cluster.folder / node / "past"
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".db") if folder.exists() else []


def test_a_session_reads_the_database_as_it_was_and_returns(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        history = await written(database)
        session = await database.session()
        for moment in reversed(history.moments):
            for point in (f"position {moment.position}", f"transaction {moment.transaction_id}"):
                assert await session.travel(point) == moment.position
                for table in ("t", "u"):
                    if table in moment.content:
                        assert await run(session, f"select * from {table} order by 1") == moment.content[table]
                    else:
                        assert await state_of(run(session, f"select * from {table}")) == "42P01"
        assert await session.travel(None) is None
        await run(session, "insert into t(v) values('now')")
        assert (await run(session, "select count(*) from t"))[0] == (3,)
        await session.close()

    play(tmp_path, scene)


def test_a_session_in_the_past_says_where_it_reads_and_how_old_that_is(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        moments = (await written(database)).moments
        session = await database.session()
        query = "select triplicate_position(), triplicate_read_node(), triplicate_read_age(), (select count(*) from t)"
        later = moments[-1]
        await session.travel(f"position {moments[1].position}")
        ((position, node, age, _),) = await run(session, query)
        assert (position, node) == (moments[1].position, "n1")
        assert isinstance(age, float)
        assert 0 < age < 3600
        past = await session.session_as_of(f"position {later.position}")
        ((position, node, less, _),) = await run(past, query)
        assert (position, node) == (later.position, "n1")
        ((_, _, more, _),) = await run(session, query)
        assert isinstance(less, float)
        assert isinstance(more, float)
        assert 0 <= less < more
        await past.close()
        await session.travel("position 0")
        assert await run(session, "select triplicate_position(), triplicate_read_node(), triplicate_read_age()") == [(0, "n1", None)]
        await session.travel(None)
        assert (await run(session, query))[0][:2] == (database.position, "n1")
        await session.close()

    play(tmp_path, scene)


def test_nothing_is_changed_in_the_past(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        history = await written(database)
        session = await database.session()
        await session.travel(f"position {history.moments[1].position}")
        for statement in ("insert into t(v) values('x')", "create table x(a)", "begin immediate"):
            with pytest.raises(SqlError, match="as it was at position 2") as refused:
                await run(session, statement)
            assert refused.value.sqlstate == "25006"
        await run(session, "begin")
        assert await run(session, "select count(*) from t") == [(2,)]
        assert await state_of(session.travel(None)) == "25001"
        await run(session, "rollback")
        assert database.position == history.moments[-1].position
        await session.close()

    play(tmp_path, scene)


def test_a_point_that_is_not_kept_or_is_none_is_refused_and_the_session_stays(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        await written(database)
        await (await door_of(cluster)).want(database.position)
        (snapshot,) = await snapshots_listed(cluster, 1)
        await truncate(cluster, snapshot.position)
        session = await database.session()
        with pytest.raises(SqlError, match=f"the oldest that is kept is position {snapshot.position}") as refused:
            await session.travel("position 1")
        assert refused.value.sqlstate == "55000"
        assert await state_of(session.travel("position 99")) == "55000"
        assert await state_of(session.travel("time 2999-01-01")) == "55000"
        for point in ("yesterday", "position -1", "time noon", "transaction x"):
            assert await state_of(session.travel(point)) == "22023"
        assert await run(session, "select count(*) from t") == [(2,)]
        assert await session.travel(f"position {snapshot.position}") == snapshot.position
        await session.close()

    play(tmp_path, scene)


def test_a_time_before_the_oldest_snapshot_is_refused_and_does_not_read_that_snapshot(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        await written(database)
        await (await door_of(cluster)).want(database.position)
        (snapshot,) = await snapshots_listed(cluster, 1)
        await truncate(cluster, snapshot.position)
        session = await database.session()
        for _ in range(2):  # The copy is built for the first one, and there for the second.
            with pytest.raises(SqlError, match=f"the oldest that is kept is position {snapshot.position}, of ") as refused:
                await session.travel("time 1970-01-01")
            assert refused.value.sqlstate == "55000"
            with pytest.raises(SqlError, match=r"time 1970-01-01 .* is no longer kept"):
                await session.session_as_of("time 1970-01-01")
        assert past_databases(cluster).positions == {snapshot.position: 0}
        await run(session, "insert into t(v) values('later')")
        assert await session.travel(f"time {time_text(snapshot.time_ms)}") == snapshot.position
        await session.close()

    play(tmp_path, scene)


def test_copies_are_shared_bounded_and_deleted(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        settings = replace(SETTINGS, node_id="n1", directory=str(cluster.folder / "n1"), past_copies=2)
        await cluster.start_with("n1", settings)
        database = await cluster.leader()
        await written(database)
        first, second, third = [await database.session() for _ in range(3)]
        await first.travel("position 1")
        await second.travel("position 1")
        assert len(files(cluster)) == 1
        await second.travel("position 2")
        assert past_databases(cluster).positions == {1: 1, 2: 1}
        assert await state_of(third.travel("position 3")) == "53400"
        await first.close()
        await third.travel("position 3")
        assert past_databases(cluster).positions == {2: 1, 3: 1}
        assert len(files(cluster)) == 2
        await second.travel(None)
        await third.close()
        assert past_databases(cluster).positions == {2: 0, 3: 0}
        await cluster.nodes.pop("n1").stop()
        assert not files(cluster)

    play(tmp_path, scene, nodes=0)


def test_a_position_or_later_is_the_nodes_own_copy_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads neither a snapshot nor the log, and a copy that is there and late enough is read again."""

    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        history = await written(database)
        reading, writing = await database.session(), await database.session()
        frames, asked = PastCopies.frames, []

        def noted(self: PastCopies, begin: int, end: int) -> AsyncGenerator[BatchFrame, None]:
            asked.append(end - begin)
            return frames(self, begin, end)

        monkeypatch.setattr(PastCopies, "frames", noted)
        assert await reading.travel("position 3 or later") == history.moments[-1].position
        assert await run(reading, "select * from t order by 1") == history.moments[-1].content["t"]
        await run(writing, "insert into t(v) values('later')")
        assert await reading.travel("position 4 or later") == history.moments[-1].position
        assert await reading.travel(f"position {history.moments[-1].position}") == history.moments[-1].position
        assert len(files(cluster)) == 1
        assert await reading.travel(f"position {database.position} or later") == database.position
        assert (await run(reading, "select v from t order by id desc limit 1")) == [("later",)]
        assert past_databases(cluster).positions == {history.moments[-1].position: 0, database.position: 1}
        assert await state_of(reading.travel(f"position {database.position + 1} or later")) == "55000"
        assert asked == [0, 0]
        assert not list(cluster.folder.glob("n1/**/*.snapshot"))
        await reading.close()
        await writing.close()

    play(tmp_path, scene)


def test_a_copy_begins_with_the_nodes_own_one_unless_a_snapshot_is_nearer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    copy_to = SqlSnapshots.copy_to

    async def noted(self: SqlSnapshots, path: str, latest: int | None) -> bool:
        copied.append(self.position)
        return await copy_to(self, path, latest)

    monkeypatch.setattr(SqlSnapshots, "copy_to", noted)

    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        moments = (await written(database)).moments
        session = await database.session()
        past = PastCopies(database._host, cluster.logs["n1"], (await command_on(cluster))[2], None, database.snapshots)
        await session.travel(f"position {moments[-2].position}")
        assert not copied  # The node's copy is later.
        await session.travel(f"position {moments[-1].position}")
        assert copied == [moments[-1].position]
        await (await door_of(cluster)).want(database.position)
        await snapshots_listed(cluster, 1)
        monkeypatch.setattr(SqlSnapshots, "position", 1)
        made = await past.make(AtPosition(moments[-1].position), str(tmp_path / "far.db"))
        assert made.position == moments[-1].position
        assert len(copied) == 1  # The snapshot is nearer.
        await session.close()

    play(tmp_path / "nodes", scene)


def test_a_copy_is_not_made_of_one_that_moves_beyond_its_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: Cluster) -> None:
        moments = (await written(await cluster.leader())).moments
        session = await (await cluster.leader()).session()
        monkeypatch.setattr(SqlSnapshots, "position", moments[-2].position)  # As it was a moment ago.
        assert await session.travel(f"position {moments[-2].position}") == moments[-2].position
        assert await run(session, "select * from t order by 1") == moments[-2].content["t"]
        assert len(files(cluster)) == 1
        await session.close()

    play(tmp_path, scene)


@pytest.mark.parametrize("fault", [Diverged("a test"), EnvironmentFault("the write-ahead log grew"), CorruptionError("not sound")])
def test_a_copy_of_the_nodes_own_one_that_fails_is_made_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fails(*_: object) -> SqliteBackup:
        raise fault

    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        moments = (await written(database)).moments
        session = await database.session()
        monkeypatch.setattr(SqliteBackup, "step", fails)
        assert await session.travel(f"position {moments[-1].position} or later") == moments[-1].position
        assert await run(session, "select * from t order by 1") == moments[-1].content["t"]
        assert not database.snapshots.holds_wal
        assert len(files(cluster)) == 1
        await session.close()

    play(tmp_path, scene)


def test_copies_of_an_earlier_process_are_deleted_at_the_start(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        folder = cluster.folder / "n1" / "past"
        folder.mkdir(parents=True)
        (folder / "1-7.db").write_bytes(b"left")
        await cluster.start("n1")
        assert not files(cluster)

    play(tmp_path, scene, nodes=0)


def test_copies_beyond_their_size_limit_are_refused(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        settings = replace(SETTINGS, node_id="n1", directory=str(cluster.folder / "n1"), past_copies_bytes=1024)
        await cluster.start_with("n1", settings)
        database = await cluster.leader()
        await written(database)
        session = await database.session()
        with pytest.raises(SqlError, match="past_copies_bytes") as refused:
            await session.travel("position 1")
        assert refused.value.sqlstate == "55000"
        assert not files(cluster)
        await session.close()

    play(tmp_path, scene, nodes=0)


async def _with_a_later_right(database: SqlDatabase) -> dict[str, int]:
    """A role that has got and lost rights; positions."""
    admin = await with_roles(database, "ann")
    await command(admin, grant(["t"], "ann", Action.SELECT))
    positions = {"granted": database.position}
    await command(admin, grant(["secret"], "ann", Action.SELECT))
    positions["both"] = database.position
    await command(admin, grant(["secret"], "ann", Action.SELECT, grants=False))
    await run(admin, "drop table secret")
    await run(admin, "alter table t rename to renamed")
    await run(admin, "create table secret(id integer primary key, v text)")
    await command(admin, grant(["secret"], "ann", Action.SELECT))
    await admin.close()
    return positions


def test_a_role_reads_of_the_past_what_it_may_read_now_and_might_then(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        positions = await _with_a_later_right(database)
        session = await session_of(database, "ann")
        assert await run(session, "select count(*) from secret") == [(0,)]
        await session.travel(f"position {positions['granted']}")
        assert await state_of(run(session, "select * from secret")) == "42501"  # It has the right now, to another table of this name.
        assert await run(session, "select v from t") == [("t",)]  # It has the right now, by another name of this table.
        await session.travel(f"position {positions['both']}")
        assert await state_of(run(session, "select * from secret")) == "42501"  # That table was dropped.
        await session.travel(None)
        for moment in ("granted", "both"):
            looking = await session.session_as_of(f"position {positions[moment]}")
            assert await state_of(run(looking, "select v from secret")) == "42501"
            assert await run(looking, "select v from t") == [("t",)]
        assert sum(past_databases(cluster).positions.values()) == 2
        await session.close()
        assert sum(past_databases(cluster).positions.values()) == 0
        admin = await database.session()
        await admin.travel(f"position {positions['granted']}")
        assert await run(admin, "select v from secret") == [("secret",)]
        await admin.close()

    play(tmp_path, scene)


def test_superusers_read_all_of_the_past(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "ann", "sup")
        await command(admin, AlterRole("sup", {"is_superuser": True}))
        await command(admin, grant_create("ann"))
        ann = await session_of(database, "ann")
        for sql in ("create table own(a text)", "insert into own values('x')", "create view look as select a from own"):
            await run(ann, sql)
        position = database.position
        for sql in ("drop view look", "drop table own", "create table stays(a text)"):
            await run(ann, sql)
        await run(admin, "drop table secret")
        for session in (admin, await session_of(database, "sup")):
            await session.travel(f"position {position}")
            assert await run(session, "select a from look") == [("x",)]
            assert await run(session, "select v from secret") == [("secret",)]
            await session.close()
        await ann.close()

    play(tmp_path, scene)


def test_a_right_to_a_name_is_none_to_the_table_that_had_it(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "ann")
        await run(admin, "create view look as select v from secret")
        for name in ("t", "secret", "look"):
            await command(admin, grant([name], "ann", Action.SELECT))
        await command(admin, grant_create("ann"))
        position = database.position
        for name in ("secret", "look"):
            await command(admin, grant([name], "ann", Action.SELECT, grants=False))
        session = await session_of(database, "ann")
        await session.travel(f"position {position}")
        assert await run(session, "select v from t") == [("t",)]
        for name in ("secret", "look"):
            assert await state_of(run(session, f"select * from {name}")) == "42501"
        # The session stays in the past while the names get other tables, which are the role's own.
        for number in range(300):
            await run(admin, f"insert into t(v) values('{number}')")
        await run(admin, "alter table secret rename to hidden")
        await run(admin, "drop view look")
        own = await session_of(database, "ann")
        await run(own, "create table secret(id integer primary key, v text)")
        await run(own, "create view look as select v from secret")
        for reader in (session, await own.session_as_of(f"position {position}")):
            assert await run(reader, "select v from t") == [("t",)]
            for name in ("secret", "look"):
                assert await state_of(run(reader, f"select * from {name}")) == "42501"
        # A right to the table under its present name is one to its past.
        await command(admin, grant(["hidden"], "ann", Action.SELECT))
        assert await run(session, "select v from secret") == [("secret",)]
        assert await state_of(run(session, "select * from look")) == "42501"
        assert await run(own, "select * from secret") == []
        for one in (session, own, admin):
            await one.close()

    play(tmp_path, scene)


def test_a_follower_reads_the_past_too(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        history = await written(await cluster.leader())
        follower = next(name for name in cluster.nodes if name != cluster.leader_name())
        database = await cluster.caught_up(follower, 1)
        session = await database.session()
        await session.travel("position 2")
        assert cast("list[object]", await run(session, "select * from t order by 1")) == history.moments[1].content["t"]
        await session.close()

    play(tmp_path, scene, nodes=2)
