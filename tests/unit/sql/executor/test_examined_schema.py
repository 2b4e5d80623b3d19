"""The schema that the connections of a database share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from triplicate.sql.executor.examined_schema import NewestSchema


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "copy.db")


@pytest.fixture
def writer(path: str) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(path)
    for sql in ("pragma journal_mode = wal", "create table T(id integer primary key)", "create virtual table f using fts5(a)"):
        connection.execute(sql).fetchall()
    yield connection
    connection.close(True)


def test_kinds_go_by_any_spelling_and_virtual_tables_have_none(writer: apsw.Connection) -> None:
    writer.execute("create view V as select id from t")
    schema = NewestSchema().of(writer)
    assert [schema.kind(name) for name in ("t", "T", "v", "f", "nosuch", "sqlite_schema")] == ["table", "table", "view", None, None, None]


def test_a_schema_is_read_once_and_an_older_snapshot_does_not_replace_it(writer: apsw.Connection, path: str) -> None:
    newest, reader = NewestSchema(), apsw.Connection(path)
    first = newest.of(reader)
    reader.execute("begin; select * from t").fetchall()
    writer.execute("create view v as select id from t")
    second = newest.of(writer)
    assert second.kind("v") == "view"
    assert newest.of(reader).kind("v") is None
    assert newest.of(writer) is second is not first
    reader.close(True)


def test_a_schema_that_was_rolled_back_is_forgotten(writer: apsw.Connection) -> None:
    newest = NewestSchema()
    newest.forget()
    writer.execute("begin; create view v as select id from t")
    assert newest.of(writer).kind("v") == "view"
    writer.execute("rollback")
    newest.forget()
    writer.execute("create view w as select id from t")
    assert [newest.of(writer).kind(name) for name in "vw"] == [None, "view"]
