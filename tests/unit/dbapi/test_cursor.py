"""PEP 249 for cursors, and the habits of `sqlite3`, which the same test runs against `sqlite3` itself."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from triplicate import dbapi
from triplicate.testing import DatabaseOfTest


@pytest.fixture(params=["triplicate", "sqlite3"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "triplicate":
        database: DatabaseOfTest = request.getfixturevalue("triplicate_database")
        opened: Any = database.connect(detect_types=dbapi.PARSE_DECLTYPES | dbapi.PARSE_COLNAMES)
        opened.module = dbapi
    else:

        class Connection(sqlite3.Connection):
            module = sqlite3

        opened = sqlite3.connect(tmp_path / "db", detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES, factory=Connection)
    opened.execute("create table t(id integer primary key, a text)")
    yield opened
    opened.close()


def fill(connection: Any, count: int) -> None:
    connection.executemany("insert into t(a) values (?)", ((str(number),) for number in range(count)))


def test_description_and_rowcount_follow_the_statement(connection: Any) -> None:
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount) == (None, -1)
    cursor.execute("insert into t(a) values ('x'), ('y')")
    assert (cursor.description, cursor.rowcount) == (None, 2)
    cursor.execute("select id, a as b, 1 from t")
    assert [column[0] for column in cursor.description] == ["id", "b", "1"]
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.rowcount == -1
    cursor.execute("update t set a = 'z'")
    assert (cursor.description, cursor.rowcount) == (None, 2)


def test_lastrowid_is_of_the_last_row_inserted(connection: Any) -> None:
    cursor = connection.execute("insert into t(id, a) values (7, 'x')")
    assert cursor.lastrowid == 7
    cursor.execute("insert into t(a) values ('y'), ('z')")
    assert cursor.lastrowid == 9
    cursor.execute("update t set a = 'q'")
    cursor.execute("select 1")
    assert cursor.lastrowid == 9


@pytest.mark.parametrize("count", [0, 3, 100, 101, 1100, 2345])
def test_rows_are_fetched_in_order_however_many_there_are(connection: Any, count: int) -> None:
    fill(connection, count)
    wanted = [(number + 1, str(number)) for number in range(count)]
    select = "select id, a from t order by id"
    assert connection.execute(select).fetchall() == wanted
    assert list(connection.execute(select)) == wanted
    cursor = connection.execute(select)
    found = [*([row] if (row := cursor.fetchone()) else []), *cursor.fetchmany(150), *cursor.fetchmany(), *cursor.fetchall()]
    assert found == wanted
    assert (cursor.fetchone(), cursor.fetchmany(5), cursor.fetchall()) == (None, [], [])


def test_arraysize_is_the_default_of_fetchmany(connection: Any) -> None:
    fill(connection, 5)
    cursor = connection.execute("select id from t order by id")
    assert cursor.arraysize == 1
    assert cursor.fetchmany() == [(1,)]
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(2,), (3,), (4,)]


def test_parameters_are_given_by_place_or_by_name(connection: Any) -> None:
    assert connection.execute("select ?, ?", (1, "b")).fetchone() == (1, "b")
    assert connection.execute("select ?2, ?1", ["a", "b"]).fetchone() == ("b", "a")
    assert connection.execute("select :a, @b, $c, :a", {"a": 1, "b": 2.5, "c": None}).fetchone() == (1, 2.5, None, 1)


def test_values_keep_their_types(connection: Any) -> None:
    values = (None, 2**63 - 1, -1.5, "é\n", b"\x00\xff", bytearray(b"x"), memoryview(b"y"), True)
    row = connection.execute(f"select {','.join('?' * len(values))}", values).fetchone()
    assert row == (None, 2**63 - 1, -1.5, "é\n", b"\x00\xff", b"x", b"y", 1)


def test_one_change_runs_for_many_rows(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.executemany("insert into t(a) values (:a)", [{"a": "x"}, {"a": "y"}])
    assert cursor.rowcount == 2
    cursor.executemany("update t set a = ? where id > ?", [("p", 0), ("q", 1)])
    assert cursor.rowcount == 3
    with pytest.raises(connection.ProgrammingError):
        cursor.executemany("select ?", [(1,)])
    cursor.executemany("insert into t(a) values (?)", [])
    assert cursor.rowcount in (0, -1)


def test_rows_have_names_with_a_row_factory(connection: Any) -> None:
    fill(connection, 1)
    connection.row_factory = connection.module.Row
    row = connection.execute("select id, a as Name from t").fetchone()
    assert (row["name"], row["ID"], row[1], row[-1], row[0:1], row.keys(), len(row), tuple(row)) == (
        "0", 1, "0", "0", (1,), ["id", "Name"], 2, (1, "0"),
    )  # fmt: skip
    assert row == connection.execute("select id, a as Name from t").fetchone()
    with pytest.raises(IndexError):
        row["other"]
    connection.row_factory = lambda cursor, values: dict(zip([column[0] for column in cursor.description], values, strict=True))
    assert connection.execute("select 1 as one").fetchone() == {"one": 1}


def test_text_is_made_by_the_text_factory(connection: Any) -> None:
    connection.text_factory = bytes
    assert connection.execute("select 'x', 1").fetchone() == (b"x", 1)


def test_values_of_other_types_are_adapted_and_converted(connection: Any) -> None:
    class Point:
        def __init__(self, x: int, y: int) -> None:
            self.x, self.y = x, y

    connection.module.register_adapter(Point, lambda point: f"{point.x};{point.y}")
    connection.module.register_converter("place", lambda data: tuple(map(int, data.split(b";"))))
    connection.execute("create table p(at place)")
    connection.execute("insert into p values (?)", (Point(1, 2),))
    assert connection.execute("select at from p").fetchall() == [((1, 2),)]
    assert connection.execute("select '3;4' as 'x [place]'").fetchone() == ((3, 4),)


def test_dates_are_stored_as_text(triplicate_database: DatabaseOfTest) -> None:
    with triplicate_database.transaction() as transaction:
        transaction.execute("create table d(day date, at timestamp)")
    connection = triplicate_database.connect(detect_types=dbapi.PARSE_DECLTYPES)
    day, at = datetime.date(2026, 2, 3), datetime.datetime(2026, 2, 3, 4, 5, 6)  # noqa: DTZ001
    connection.execute("insert into d values (?, ?)", (day, at))
    assert connection.execute("select day, at from d").fetchone() == (day, at)
    connection.commit()
    assert triplicate_database.execute("select day, at from d").rows == [("2026-02-03", "2026-02-03 04:05:06")]
    connection.close()


def test_a_closed_cursor_is_refused(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.close()
    for use in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute("select 1")):
        with pytest.raises(connection.ProgrammingError):
            use()


def test_sizes_have_no_effect(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.setinputsizes([1])
    cursor.setoutputsize(10)
    cursor.setoutputsize(10, 1)
    assert cursor.connection is connection


def test_a_statement_is_text(connection: Any) -> None:
    with pytest.raises(TypeError):
        connection.execute(b"select 1")


def test_type_codes_equal_the_type_objects(triplicate_database: DatabaseOfTest) -> None:
    connection = triplicate_database.connect()
    connection.execute("create table k(a varchar(10), b blob, c integer, d timestamp, e)")
    codes = [column[1] for column in connection.execute("select a, b, c, d, e, 1 from k").description or ()]
    kinds = [dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME]
    assert all(code == kind for code, kind in zip(codes, kinds, strict=False))
    assert codes[0] != dbapi.BINARY
    assert not codes[4]
    assert codes[5] is None
    connection.close()


def test_a_cursor_that_is_dropped_gives_its_snapshot_back(triplicate_database: DatabaseOfTest) -> None:
    connection = triplicate_database.connect()
    for _ in range(80):  # There are fewer readers than that.
        connection.execute("with recursive c(x) as (select 1 union all select x + 1 from c where x < 9999) select x from c").fetchone()
    connection.close()


def test_the_last_rowid_and_the_changes_are_of_this_connection(connection: Any, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    def values(sql: str = "select last_insert_rowid(), changes()") -> Any:
        return connection.execute(sql).fetchone()

    if connection.module is dbapi:
        other: Any = request.getfixturevalue("triplicate_database").connect()
    else:
        other = sqlite3.connect(tmp_path / "db")
    connection.isolation_level = other.isolation_level = None
    connection.execute("create table c(parent, n)")
    connection.execute("insert into t(a) values ('mine')")
    other.execute("insert into t values (777, 'other'), (778, 'other')")
    assert values() == (1, 1)
    total = values("select total_changes()")[0]
    connection.execute("insert into c values (last_insert_rowid(), 1)")
    assert connection.execute("select * from c").fetchall() == [(1, 1)]
    connection.execute("begin immediate")
    connection.execute("update t set a = changes() where id > 1")
    assert values() == (1, 2)
    assert values("select typeof(changes()), last_insert_rowid ( ) order by changes()") == ("integer", 1)
    connection.execute("insert into t(id) values (last_insert_rowid() + 10), (last_insert_rowid() + 10)")
    assert values() == (21, 2)
    connection.execute("rollback")
    assert values("select total_changes()")[0] > total
    other.close()
