"""The text of sqlite3's ``.dump``, imported as a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.unit.sql.backup.past_rig import command_on, ones
from tests.unit.sql.cluster import Cluster, play, run
from tests.unit.sql.hosting.restoring_rig import hosted
from triplicate.errors import ArgumentError
from triplicate.runtime import real_host
from triplicate.sql import database_names
from triplicate.sql.backup.sqlite_dump import is_sqlite_dump, load_sqlite_dump
from triplicate.sql.hosting.database_backups import import_database

DUMP = r"""PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE t(id integer primary key autoincrement,
    v text, at timestamp);
INSERT INTO t VALUES(1,'one','2026-01-31 12:00:00');
INSERT INTO t VALUES(2,'it''s; -- no comment',NULL);
INSERT INTO t VALUES(3,replace('line\ntwo;\n','\n',char(10)),NULL);
INSERT INTO t VALUES(4,'ü€😀;
',NULL);
CREATE TABLE IF NOT EXISTS "odd ""name"(a, b blob);
INSERT INTO "odd ""name" VALUES(3.0,X'00ff');
CREATE TABLE p(k text primary key, n real) without rowid;
INSERT INTO p VALUES('k',1.0000000000000000047e+300);
PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','f','f',0,'CREATE VIRTUAL TABLE f using fts5(body)');
CREATE TABLE IF NOT EXISTS 'f_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO f_data VALUES(1,X'0102');
INSERT INTO f_data VALUES(10,X'000000000101010001010101');
INSERT INTO f_data VALUES(137438953473,X'000000170630616c706861010202010462657461010203040a');
CREATE TABLE IF NOT EXISTS 'f_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO f_idx VALUES(1,X'',2);
CREATE TABLE IF NOT EXISTS 'f_content'(id INTEGER PRIMARY KEY, c0);
INSERT INTO f_content VALUES(1,'alpha beta');
CREATE TABLE IF NOT EXISTS 'f_docsize'(id INTEGER PRIMARY KEY, sz BLOB);
INSERT INTO f_docsize VALUES(1,X'02');
CREATE TABLE IF NOT EXISTS 'f_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO f_config VALUES('version',4);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('t',9);
CREATE INDEX t_v on t(v);
CREATE VIEW w as select v from t;
CREATE TRIGGER g after insert on t begin insert into "odd ""name" values('new; row', null); end;
PRAGMA writable_schema=OFF;
COMMIT;
"""
"""As sqlite3 3.40 writes it."""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "dump.sql"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_dump_becomes_a_database_that_goes_on(tmp_path: Path) -> None:
    path = written(tmp_path, DUMP)

    async def scene(cluster: Cluster) -> None:
        client, logs, _ = await command_on(cluster)
        (tmp_path / "work").mkdir()
        info = await import_database(client, logs, str(path), ones("taken"), str(tmp_path / "work"))
        assert not list((tmp_path / "work").iterdir())
        session = await (await hosted(cluster, "taken", info.identity)).session()
        await run(session, "insert into t(v) values('next')")
        assert await run(session, "select id, v, at from t order by id") == [
            (1, "one", "2026-01-31 12:00:00"),
            (2, "it's; -- no comment", None),
            (3, "line\ntwo;\n", None),
            (4, "ü€😀;\n", None),
            (10, "next", None),
        ]
        rows = await run(session, 'select a, typeof(a), b from "odd ""name" order by rowid')
        assert rows == [(3.0, "real", b"\0\xff"), ("new; row", "text", None)]
        assert await run(session, "select * from p") == [("k", 1e300)]
        assert await run(session, "select count(*) from f where f match 'beta'") == [(1,)]
        assert await run(session, "select count(*) from w") == [(5,)]
        await session.close()
        path.write_text(DUMP.replace("'2026-01-31 12:00:00'", "'noon'"))
        with pytest.raises(ArgumentError, match=r"dump.sql has content that a database refuses: .*noon"):
            await import_database(client, logs, str(path), ones("other"), str(tmp_path / "work"))
        assert await database_names(client) == ["db", "taken"]
        assert not list((tmp_path / "work").iterdir())

    play(tmp_path / "nodes", scene)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text.replace("VALUES('k',", "VALUES('k' 1,"), r'line 13: near "1": syntax error'),
        (lambda text: text.replace("    v text,", "    v text v,,"), r"line 4: near"),
        (lambda text: text.replace("INSERT INTO f_idx", "INSERT INTO f_jdx"), "line 21: no such table: f_jdx"),
        (lambda text: text[: text.index("€😀")], "line 8: the text ends, at line 8, within this statement"),
        (lambda text: text[: text.index("CREATE INDEX")], "ends before its COMMIT"),
        (lambda text: text.replace("COMMIT;", "ROLLBACK; -- due to errors"), "line 34: the dump met errors when it was written"),
        (lambda text: text.encode().replace("😀".encode(), b"\xff"), "line 8: the text is no UTF-8"),
        (lambda text: text.replace("CREATE INDEX", "ATTACH 'other.db' AS other; CREATE INDEX"), "line 30: not authorized"),
        (lambda text: text.replace("CREATE INDEX", "PRAGMA journal_mode=WAL; CREATE INDEX"), "line 30: not authorized"),
    ],
)
def test_a_damaged_dump_is_refused_with_its_line(tmp_path: Path, damage: Callable[[str], str | bytes], reason: str) -> None:
    path = written(tmp_path, damage(DUMP))

    async def scene() -> None:
        host = real_host("test")
        assert is_sqlite_dump(host, str(path))
        with pytest.raises(ArgumentError, match=reason):
            load_sqlite_dump(host, str(path), str(tmp_path / "loaded.db"))

    asyncio.run(scene())
    assert not (tmp_path / "other.db").exists()
    with apsw.Connection(str(tmp_path / "loaded.db")) as connection:
        assert connection.execute("select count(*) from sqlite_schema").fetchall() == [(0,)]
    connection.close(True)


def load(folder: Path, text: str) -> list[tuple[object, ...]]:
    """The rows of table t after a dump was loaded."""
    path = written(folder, text)

    async def scene() -> None:
        load_sqlite_dump(real_host("test"), str(path), str(folder / "loaded.db"))

    asyncio.run(scene())
    connection = apsw.Connection(str(folder / "loaded.db"))
    rows: list[tuple[object, ...]] = connection.execute("select * from t").fetchall()
    connection.close(True)
    return rows


def test_the_lines_of_a_long_text_are_not_searched_for_its_end_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complete, asked = apsw.complete, list[int]()

    def counted(statement: str) -> bool:
        asked.append(len(statement))
        return complete(statement)

    monkeypatch.setattr(apsw, "complete", counted)
    text = "it''s; -- [a \" `line` /* of many;\n" * 5000
    rows = load(tmp_path, f"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t(a);\nINSERT INTO t VALUES('{text}');\nCOMMIT;\n")
    assert rows == [(text.replace("''", "'"),)]
    assert len(asked) == 5


@pytest.mark.parametrize(
    "table",
    [
        'CREATE TABLE t(a, "b;\n;", `c;\n;`, [d;\n;]);',
        "CREATE TABLE t(a /* it's\n;\n */, b, -- it's;\n c, d);",
        "CREATE TABLE t(a, b, c default 'x;\n''y;\n', d);",
        "CREATE TABLE t(a, b, c, d); CREATE TRIGGER g after insert on t begin\n select 1;\n select ';';\n end;",
    ],
)
def test_a_semicolon_at_the_end_of_a_line_ends_a_statement_only_where_sqlite_says_so(tmp_path: Path, table: str) -> None:
    rows = load(tmp_path, f"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n{table}\nINSERT INTO t VALUES(1,2,3,4);\nCOMMIT;\n")
    assert rows == [(1, 2, 3, 4)]


def test_statements_behind_a_query_in_one_line_run(tmp_path: Path) -> None:
    rows = load(tmp_path, "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t(a);\nSELECT 1; INSERT INTO t VALUES(7);\nCOMMIT;\n")
    assert rows == [(7,)]
