"""A database with a small history of which every state is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import apsw

from tests.unit.sql.cluster import Cluster, run
from triplicate.client import Client
from triplicate.config.log_settings import LogSettings
from triplicate.log import Logs
from triplicate.sql import DatabaseInfo, SqlDatabase
from triplicate.sql.backup.backup_files import open_backup, rebuild
from triplicate.sql.backup.backup_writer import BackupWriter
from triplicate.sql.backup.core.target import Target
from triplicate.sql.backup.past_copy import DatabaseLog, PastCopies
from triplicate.sql.backup.past_databases import PastDatabases
from triplicate.sql.hosting.database_directory import read_info
from triplicate.sql.hosting.hosted_database import HostedDatabase
from triplicate.sql.hosting.restoring import NewDatabase, create_from_file, source_of

_OURS = r"tbl_name not like 'triplicate\_%' escape '\' and tbl_name not like 'sqlite\_%' escape '\'"
Content = dict[str, list[tuple[object, ...]]]


@dataclass
class Moment:
    """A database after one transaction."""

    position: int
    transaction_id: int
    content: Content


@dataclass
class History:
    """The moments of a database, the first after its first transaction."""

    moments: list[Moment] = field(default_factory=list)


STATEMENTS = (
    ("create table t(id integer primary key, v text)",),
    ("insert into t(v) values('one'), ('two')",),
    ("create table u(k text primary key, n int) without rowid", "insert into u values('a', 1)"),
    ("update t set v = 'second' where id = 2", "delete from u", "insert into u values('b', 2)"),
    ("alter table t add column w int default 7",),
    ("insert into t(v, w) values('three', 3)",),
    ("drop table u",),
    ("delete from t where id = 1",),
)


async def written(database: SqlDatabase, statements: tuple[tuple[str, ...], ...] = STATEMENTS) -> History:
    """Run transactions one after another, and note the database after each."""
    history = History()
    session = await database.session()
    for transaction in statements:
        await run(session, "begin")
        for statement in transaction:
            await run(session, statement)
        ((number,),) = await run(session, "select pg_current_xact_id()")
        await run(session, "commit")
        history.moments.append(Moment(database.position, cast("int", number), content_of(Path(database.path))))
    await session.close()
    return history


def content_of(path: Path) -> Content:
    """The schema and the rows of a database's file, without the internal tables."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        tables = [
            str(name) for (name,) in connection.execute(f"select name from sqlite_schema where type = 'table' and {_OURS} order by name")
        ]
        found: Content = {name: connection.execute(f'select * from "{name}" order by 1').fetchall() for name in tables}
        found["(schema)"] = connection.execute(f"select name, sql from sqlite_schema where {_OURS} order by name").fetchall()
        return found
    finally:
        connection.close(True)


async def command_on(cluster: Cluster, name: str = "db") -> tuple[Client, Logs, DatabaseLog]:
    """The client, the logs and the database of a command."""
    client = cluster.client("command")
    info = await read_info(client, name)
    return client, cluster.logs["command"], source_of(info)


async def past_of(cluster: Cluster, name: str = "db") -> PastCopies:
    client, logs, source = await command_on(cluster, name)
    return PastCopies(client.host, logs, source)


def past_databases(cluster: Cluster, node: str = "n1") -> PastDatabases:
    """The copies of a node."""
    hosted = cluster.nodes[node].databases.hosted["db"]
    assert isinstance(hosted, HostedDatabase)
    return hosted._parts.past


def writer_of(cluster: Cluster, source: DatabaseLog) -> BackupWriter:
    return BackupWriter(cluster.client("backup").host, cluster.logs["backup"], source)


async def restored(cluster: Cluster, backup: Path, target: Target | None, new: NewDatabase) -> DatabaseInfo:
    """Restore a backup, as the command does."""
    client = cluster.client("restore")
    work = str(cluster.folder / "restore.db")
    opened = open_backup(client.host, str(backup))
    rebuild(client.host, opened, target, work)
    try:
        return await create_from_file(client, cluster.logs["restore"], work, bytes.fromhex(opened.manifest.identity), new)
    finally:
        Path(work).unlink()


def ones(name: str, *, replaces: bool = False) -> NewDatabase:
    """A database with one copy of its log, as there is one bookie."""
    settings = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)
    return NewDatabase(name, settings=settings, replaces=replaces)
