"""Values of every type through every client, and the types that Describe reports before execution."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest

from tests.clients.stand import Db, run

UTC = dt.UTC
COLUMNS = (
    "a INTEGER PRIMARY KEY, b TEXT, c REAL, d TIMESTAMP, e BOOLEAN, f NUMERIC, g BLOB, h DATE, i UUID, j TIMESTAMPTZ, k TIME,"
    " l BIGINT, m VARCHAR(20), n BYTEA, o DOUBLE PRECISION"
)
ROWS: list[tuple[Any, ...]] = [
    (
        1, "x", 1.5,
        dt.datetime.fromisoformat("2013-01-01 05:06:07"), True, Decimal("1.25"), b"\0\1\xff", dt.date(2013, 1, 2), uuid.UUID(int=7),
        dt.datetime(2013, 7, 1, 23, 59, 59, 123456, tzinfo=UTC), dt.time(4, 5, 6, 789), 2**63 - 1, "é'\"\\", b"", -0.1,
    ),
    (
        -2, "", 0.0, dt.datetime.fromisoformat("1969-12-31 23:59:59.999999"), False, Decimal(-100), b"", dt.date(1900, 2, 28),
        uuid.UUID(int=2**128 - 1), dt.datetime(1999, 12, 31, tzinfo=UTC), dt.time(0, 0), -(2**63), "日本語 🙂", bytes(range(256)), 1e300,
    ),
    (3, *([None] * 14)),
]  # fmt: skip
WIDTH = len(ROWS[0])


@pytest.mark.parametrize("binary", [False, True])
def test_every_type_round_trips_with_psycopg(shared: Db, table: str, binary: bool) -> None:
    with shared.connect() as connection:
        connection.execute(f"CREATE TABLE {table} ({COLUMNS})".encode())
        places = ", ".join(["%b" if binary else "%t"] * WIDTH)
        for row in ROWS:
            connection.execute(f"INSERT INTO {table} VALUES ({places})".encode(), row)
        cursor = connection.cursor(binary=binary)
        found = cursor.execute(f"SELECT * FROM {table} WHERE a IN (1, -2, 3) ORDER BY abs(a)".encode()).fetchall()
    assert found == ROWS


def test_every_type_round_trips_with_asyncpg(shared: Db, table: str) -> None:
    async def body() -> None:
        connection = await shared.asyncpg()
        await connection.execute(f"CREATE TABLE {table} ({COLUMNS})")
        places = ", ".join(f"${n}" for n in range(1, WIDTH + 1))
        await connection.executemany(f"INSERT INTO {table} VALUES ({places})", ROWS)
        assert [tuple(row) for row in await connection.fetch(f"SELECT * FROM {table} ORDER BY abs(a)")] == ROWS
        await connection.close()

    run(body())


def test_psql_prints_values_as_postgresql_does(shared: Db, table: str) -> None:
    script = (
        f"CREATE TABLE {table} (a INTEGER, b TEXT, c REAL, e BOOLEAN, g BLOB, d TIMESTAMP, j TIMESTAMPTZ);\n"
        f"INSERT INTO {table} VALUES (7, 'é', 1.5, true, x'00ff', '2013-01-01 05:06:07', '2013-01-01 05:06:07+00:00');\n"
        f"INSERT INTO {table} (a) VALUES (8);\n"
        f"SELECT * FROM {table} ORDER BY a;\n"
    )
    answer = shared.psql("-v", "ON_ERROR_STOP=1", text=script)
    assert answer.stderr == ""
    assert answer.stdout.splitlines() == ["7|é|1.5|t|\\x00ff|2013-01-01 05:06:07|2013-01-01 05:06:07+00", "8||||||"]


def test_count_is_an_int8_in_every_client(shared: Db, table: str) -> None:
    query = f"SELECT count(*), avg(a), sum(a) FROM {table}"

    async def with_asyncpg() -> None:
        connection = await shared.asyncpg()
        statement = await connection.prepare(query)
        assert [one.type.name for one in statement.get_attributes()] == ["int8", "numeric", "int8"]
        assert tuple(await statement.fetchrow()) == (2, 2.0, 4)
        await connection.close()

    with shared.connect() as connection:
        connection.execute(f"CREATE TABLE {table} (a INTEGER)".encode())
        connection.execute(f"INSERT INTO {table} VALUES (1), (3)".encode())
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            assert cursor.execute(query.encode()).fetchone() == (2, 2.0, 4)
            assert cursor.description is not None
            assert [(one.name, one.type_code) for one in cursor.description] == [("count", 20), ("avg", 1700), ("sum", 20)]
    run(with_asyncpg())
    described = shared.psql("-F", " ", text=f"{query} \\gdesc\n")
    assert described.stdout.splitlines() == ["count bigint", "avg numeric", "sum bigint"]


@pytest.mark.parametrize(
    ("statement", "described"),
    [
        ("INSERT INTO {t} VALUES ($1, $2, $3)", ["int8", "text", "float8"]),
        ("INSERT INTO {t} (c, a) VALUES ($1, $2)", ["float8", "int8"]),
        ("UPDATE {t} SET c = $1 WHERE a = $2", ["float8", "int8"]),
        ("SELECT * FROM {t} AS x WHERE x.a BETWEEN $1 AND $2 AND b LIKE $3", ["int8", "int8", "text"]),
        ("SELECT * FROM {t} WHERE a IN ($1, $2) LIMIT $3 OFFSET $4", ["int8", "int8", "int8", "int8"]),
        ("DELETE FROM {t} WHERE $1 < a", ["int8"]),
        ("SELECT $1", ["text"]),
        ("SELECT CAST($1 AS INTEGER)", ["int4"]),
    ],
)
def test_untyped_parameters_take_the_type_of_their_column(shared: Db, table: str, statement: str, described: list[str]) -> None:
    async def body() -> None:
        connection = await shared.asyncpg()
        await connection.execute(f"CREATE TABLE {table} (a INTEGER, b TEXT, c REAL)")
        prepared = await connection.prepare(statement.format(t=table))
        assert [one.name for one in prepared.get_parameters()] == described
        await connection.close()

    run(body())


def test_an_expression_takes_the_type_of_its_first_row(shared: Db) -> None:
    with shared.connect() as connection:
        cursor = connection.execute("SELECT CASE WHEN 1 THEN 7 END, CASE WHEN 1 THEN 1.5 END, CASE WHEN 1 THEN 'x' END")
        assert cursor.fetchone() == (7, 1.5, "x")


def test_random_and_now_are_the_same_on_every_node(shared: Db, table: str) -> None:
    with shared.connect() as connection:
        connection.execute(f"CREATE TABLE {table} (a INTEGER, b TEXT)".encode())
        inserted = connection.execute(f"INSERT INTO {table} SELECT random(), strftime('%f', 'now') RETURNING a, b".encode()).fetchone()
    assert inserted is not None
    for node in shared.stand.ports:
        shared.wait_for_value(node, f"SELECT a || b FROM {table}", f"{inserted[0]}{inserted[1]}")
