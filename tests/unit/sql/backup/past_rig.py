"""A database with a small history of which every state is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import apsw

from tests.unit.sql.cluster import Cluster, run
from triplicate.client import Client
from triplicate.log import Logs
from triplicate.sql import SqlDatabase
from triplicate.sql.backup.past_copy import DatabaseLog, PastCopies
from triplicate.sql.hosting.database_directory import read_info

TABLES = ("t", "u")
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
            str(name)
            for (name,) in connection.execute(
                r"select name from sqlite_schema where type = 'table' and name not like 'triplicate\_%' escape '\' and name not like 'sqlite\_%'"
                r" escape '\' order by name"
            )
        ]
        found: Content = {name: connection.execute(f'select * from "{name}" order by 1').fetchall() for name in tables}
        found["(schema)"] = connection.execute(
            r"select name, sql from sqlite_schema where tbl_name not like 'triplicate\_%' escape '\' order by name"
        ).fetchall()
        return found
    finally:
        connection.close(True)


async def source_of(cluster: Cluster, name: str = "db") -> tuple[Client, Logs, DatabaseLog]:
    """What a command that works with the cluster has."""
    client = cluster.client("command")
    info = await read_info(client, name)
    return client, cluster.logs["command"], DatabaseLog(info.name, info.identity, info.log, info.created_ms)


async def past_of(cluster: Cluster, name: str = "db") -> PastCopies:
    client, logs, source = await source_of(cluster, name)
    return PastCopies(client.host, logs, source)
