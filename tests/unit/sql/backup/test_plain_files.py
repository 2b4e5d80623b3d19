"""Plain SQLite files: exported, and imported by the rules of a database."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.unit.sql.backup.past_rig import command_on, content_of, ones, written
from tests.unit.sql.cluster import Cluster, play, run
from tests.unit.sql.hosting.restoring_rig import hosted
from tests.unit.sql.role_rig import with_roles
from triplicate.errors import ArgumentError
from triplicate.runtime import real_host
from triplicate.sql import database_names
from triplicate.sql.backup.core.target import AtPosition
from triplicate.sql.backup.plain_files import adopt_plain
from triplicate.sql.hosting.database_backups import export_database, import_database


def plain(path: Path, script: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


def test_an_exported_file_holds_the_rows_and_nothing_of_ours(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "ann_with_a_long_name")
        await run(admin, "drop table t")
        await admin.close()
        history = await written(database)
        client, logs, _ = await command_on(cluster)
        path = tmp_path / "plain.db"
        await export_database(client, logs, "db", None, str(path))
        assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["plain.db"]
        content = path.read_bytes()
        assert b"ann_with_a_long_name" not in content
        connection = sqlite3.connect(path)
        names = {name for (name,) in connection.execute("select name from sqlite_schema")}
        connection.close()
        assert names == {"t", "secret"}
        assert content_of(path)["t"] == history.moments[-1].content["t"]
        with pytest.raises(ArgumentError, match="is there already"):
            await export_database(client, logs, "db", None, str(path))
        await export_database(client, logs, "db", None, str(tmp_path / "dump.sql"), as_sql=True)
        assert 'INSERT INTO "t" (' in (tmp_path / "dump.sql").read_text()
        assert "triplicate_" not in (tmp_path / "dump.sql").read_text()
        moment = history.moments[3]
        await export_database(client, logs, "db", AtPosition(moment.position), str(tmp_path / "earlier.db"))
        assert content_of(tmp_path / "earlier.db")["u"] == moment.content["u"]

    play(tmp_path / "nodes", scene)


def test_an_imported_file_is_a_database_that_goes_on(tmp_path: Path) -> None:
    script = """
        create table t(id integer primary key autoincrement, v text, at timestamp);
        create table plain(a, b);
        create index t_v on t(v);
        create view before as select v from w;
        create view w as select v from t;
        create view broken as select nosuch() as n;
        create trigger g after insert on t begin insert into plain values(new.id, 'new'); end;
        create virtual table f using fts5(body);
        insert into t(v, at) values('one', '2026-01-31 12:00:00');
        insert into f values('alpha beta');
        insert into plain(rowid, a) values(77, x'00ff');
        insert into plain values('text', 7.5), (null, 'ä€😀');
        delete from plain where rowid > 77;
    """
    path = plain(tmp_path / "plain.db", script)

    async def scene(cluster: Cluster) -> None:
        client, logs, _ = await command_on(cluster)
        before = path.read_bytes()
        (tmp_path / "work").mkdir()
        info = await import_database(client, logs, str(path), ones("taken"), str(tmp_path / "work"))
        assert path.read_bytes() == before
        assert not list((tmp_path / "work").iterdir())
        database = await hosted(cluster, "taken", info.identity)
        session = await database.session()
        await run(session, "insert into t(v) values('two')")
        assert await run(session, "select id, v from t order by id") == [(1, "one"), (2, "two")]
        assert await run(session, "select rowid, a from plain order by 1") == [(1, 1), (77, b"\0\xff"), (78, 2)]
        assert await run(session, "select count(*) from f where f match 'beta'") == [(1,)]
        await session.close()
        assert database.position == 2

    play(tmp_path / "nodes", scene)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("create table triplicate_state(a)", "table triplicate_state"),
        ("create table t(a int); insert into t values('x')", 'column "a" of table "t" was given'),
        ("create table t(rowid text, _rowid_ text, oid text)", "table t: .*rename one of them"),
        ("create table t(a primary key, b as (a) virtual) without rowid", "table t: .*make the column STORED"),
        ("create table p(a primary key); create table c(a references p); insert into c values(1)", "table c, row 1"),
        ("pragma encoding = 'UTF-16'; create table t(a)", "UTF-16"),
        (
            "create table t(a, b); insert into t(rowid, a, b) values(7, x'ff', cast(x'61ff' as text))",
            "t, column b, row 7: .*no UTF-8 at byte 1",
        ),
        ("create table t(a text); insert into t values('x'), ('y' || char(0))", "table t, column a, row 2: .* NUL"),
        (
            "create table t(k text, n int, v text, primary key(k, n)) without rowid; insert into t values('one', 2, cast(x'c0' as text))",
            "table t, column v, row 'one', 2: .*no UTF-8",
        ),
        ("create table t(a blob, b text as (cast(a as text))); insert into t values(x'eda080')", "table t, column b, row 1: .*no UTF-8"),
        ("create table t(rowid text); insert into t values(char(0))", "table t, column rowid, row 1: .* NUL"),
        (
            """create table t(a text); pragma writable_schema = 1;
            update sqlite_schema set sql = cast(x'637265617465207461626c652074286120ff29' as text)""",
            "table sqlite_schema, column sql, row 1: .*no UTF-8",
        ),
    ],
)
def test_content_that_a_database_refuses_is_named(tmp_path: Path, script: str, reason: str) -> None:
    path = plain(tmp_path / "plain.db", script)

    async def scene() -> None:
        with pytest.raises(ArgumentError, match=reason):
            adopt_plain(real_host("test"), str(path), str(tmp_path / "work.db"), b"d" * 16)

    asyncio.run(scene())


def test_a_file_that_is_none_of_sqlite_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("dear " * 1000)

    async def scene(cluster: Cluster) -> None:
        client, logs, _ = await command_on(cluster)
        (tmp_path / "work").mkdir()
        with pytest.raises(ArgumentError, match="is no SQLite file"):
            await import_database(client, logs, str(path), ones("taken"), str(tmp_path / "work"))
        assert await database_names(client) == ["db"]
        assert not list((tmp_path / "work").iterdir())

    play(tmp_path / "nodes", scene)
