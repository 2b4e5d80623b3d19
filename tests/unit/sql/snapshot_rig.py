"""Databases whose nodes make and load snapshots."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import apsw

from tests.property.rowlog_workload import contents
from tests.unit.sql.cluster import SETTINGS, Cluster, run
from triplicate.log import LogSnapshots, Snapshot
from triplicate.replica import SnapshotKeeper
from triplicate.sql import SqlDatabase
from triplicate.sql.hosting.database_directory import log_purpose, read_info

EAGER = replace(SETTINGS, snapshot_log_bytes=1, snapshot_interval_s=0.0, snapshot_rate_bytes_per_s=0)
"""A snapshot as soon as the log has grown at all."""
ON_REQUEST = replace(SETTINGS, snapshot_log_bytes=0)


COUNTER = "with recursive c(x) as (values(1) union all select x + 1 from c where x < 500) select x from c"
SCHEMA = (
    "create table t(id integer primary key, v text)",
    "create table k(name text primary key, n int)",
    "create table a(id integer primary key autoincrement, x)",
    "create virtual table f using fts5(body)",
)


async def filled(cluster: Cluster) -> None:
    session = await (await cluster.leader()).session()
    for statement in SCHEMA:
        await run(session, statement)
    await run(session, "insert into k values('a', 1), ('b', 2), ('c', 3)")
    await run(session, "delete from k where name = 'b'")
    await run(session, "insert into a(x) values(1), (2)")
    await run(session, "delete from a where id = 2")
    await run(session, "insert into f values('alpha beta'), ('gamma')")
    await session.set_request_id("request-1")
    await run(session, "insert into k values('d', 4)")
    await session.close()


async def door_of(cluster: Cluster, name: str = "db") -> LogSnapshots:
    info = await read_info(cluster.client("looker"), name)
    return cluster.logs["looker"].snapshots(info.log)


async def snapshots_listed(cluster: Cluster, count: int, *, at: int = 0) -> tuple[Snapshot, ...]:
    """Wait for good snapshots, the newest at a position or beyond."""
    door = await door_of(cluster)
    while len(good := (await door.read()).good) < count or good[-1].position < at:
        await asyncio.sleep(0.005)
    return good


async def truncated(cluster: Cluster, offset: int) -> int:
    """Wait until the log begins at an offset or beyond."""
    info = await read_info(cluster.client("looker"), "db")
    while (first := (await cluster.logs["looker"].head(info.log)).first_offset) < offset:
        await asyncio.sleep(0.005)
    return first


async def make_snapshots(cluster: Cluster, database: SqlDatabase, count: int) -> tuple[Snapshot, ...]:
    """Write a row, ask for a snapshot, and wait for it, some times."""
    session = await database.session()
    good: tuple[Snapshot, ...] = ()
    for _ in range(count):
        await run(session, "insert into t(v) values(hex(randomblob(200)))")
        await (await door_of(cluster)).want(database.position)
        good = await snapshots_listed(cluster, 1, at=database.position)
    await session.close()
    return good


async def write_rows(database: SqlDatabase, count: int) -> int:
    """Insert rows; the position afterwards."""
    session = await database.session()
    for _ in range(count):
        await run(session, "insert into t(v) values(hex(randomblob(200)))")
    await session.close()
    return database.position


async def lose(cluster: Cluster, node: str) -> None:
    """Stop a node and delete everything it has on its disk."""
    await cluster.nodes.pop(node).stop()
    shutil.rmtree(cluster.folder / node)


def file_of(cluster: Cluster, node: str) -> Path:
    return cluster.folder / node / "databases" / "db" / "main.db"


def copied_contents(path: Path, folder: Path) -> dict[str, object]:
    """The content of a copy in use: rows with rowids, schema and internal tables, read from a second file."""
    target = folder / f"look-{path.parts[-4]}.db"
    target.unlink(missing_ok=True)
    source, copy = apsw.Connection(str(path)), apsw.Connection(str(target))
    with copy.backup("main", source, "main") as backup:
        backup.step()
    source.close()
    copy.close()
    return contents(str(target))


def keeper_of(cluster: Cluster, node: str) -> SnapshotKeeper:
    keeper = cluster.nodes[node].databases.hosted["db"].replica._snapshots
    assert keeper is not None
    return keeper


async def leader_log(cluster: Cluster) -> str:
    return (await door_of(cluster)).name


async def truncate(cluster: Cluster, offset: int) -> None:
    """Truncate the log, as the database's leader does."""
    info = await read_info(cluster.client("looker"), "db")
    logs = cluster.logs["looker"].acting_for(log_purpose(info))
    # Other clients learn of the last entry from the next one, which may be a no-op that waits.
    while await logs.end_offset(info.log) < offset:
        await asyncio.sleep(0.005)
    await logs.truncate(info.log, offset)
