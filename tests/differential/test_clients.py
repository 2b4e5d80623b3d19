"""Values of Python through psycopg and asyncpg: parameters come back with the same value from both servers."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.differential.servers import Database

TABLE = (
    "CREATE TABLE c (id int PRIMARY KEY, i int, b bigint, f float8, n numeric(10,2), t text, p bool, d date, k time, m timestamp,"
    " z timestamptz, u uuid, y bytea, j jsonb)"
)
ROW = (
    1, -5, 2**40, 1.5, Decimal("2.50"), "é'\\ %", True, dt.date(2020, 2, 29), dt.time(1, 2, 3),
    dt.datetime.fromisoformat("2020-02-29 01:02:03.5"), dt.datetime(2020, 2, 29, 1, 2, 3, tzinfo=dt.UTC), uuid.UUID(int=7), b"\0\xff",
    '{"a": [1, 2]}',
)  # fmt: skip
NULLS = (2, *[None] * 13)
INSERT = f"INSERT INTO c VALUES ({', '.join(f'${n}' for n in range(1, 15))})"

Statement = tuple[str, tuple[Any, ...]]
STATEMENTS: list[Statement] = [
    ("SELECT * FROM c ORDER BY id", ()),
    ("SELECT id FROM c WHERE i = $1", (-5,)),
    ("SELECT id FROM c WHERE b = $1 AND f = $2", (2**40, 1.5)),
    ("SELECT id FROM c WHERE n = $1", (Decimal("2.5"),)),
    ("SELECT id FROM c WHERE t = $1 AND p = $2", ("é'\\ %", True)),
    ("SELECT id FROM c WHERE d = $1 AND k = $2", (dt.date(2020, 2, 29), dt.time(1, 2, 3))),
    ("SELECT id FROM c WHERE m = $1", (dt.datetime.fromisoformat("2020-02-29 01:02:03.5"),)),
    ("SELECT id FROM c WHERE z = $1", (dt.datetime(2020, 2, 29, 2, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=1))),)),
    ("SELECT id FROM c WHERE z > $1", (dt.datetime(2020, 1, 1, tzinfo=dt.UTC),)),
    ("SELECT id FROM c WHERE u = $1 AND y = $2", (uuid.UUID(int=7), b"\0\xff")),
    ("SELECT id FROM c WHERE i IS NULL AND $1::text IS NOT NULL", ("x",)),
    ("SELECT id FROM c WHERE i BETWEEN $1 AND $2", (-6, 0)),
    ("SELECT id FROM c WHERE i IN ($1, $2, $3)", (1, -5, 9)),
    ("SELECT id FROM c ORDER BY id LIMIT $1 OFFSET $2", (1, 1)),
    ("SELECT count(*), count(i), sum(i), min(d), max(z), bool_and(p) FROM c", ()),
    ("SELECT i + $1::int, b - $2::bigint, f * $3::float8 FROM c WHERE id = 1", (1, 2, 0.5)),
    ("SELECT $2::int - $1::int", (1, 10)),
    ("SELECT $1::int AS a, $2::text AS b, $3::bool AS c", (1, "x", False)),
    (
        "SELECT $1::date, $2::timestamp, $3::time",
        (dt.date(1999, 12, 31), dt.datetime.fromisoformat("1999-12-31 23:59:59.999999"), dt.time(23, 59)),
    ),
    ("SELECT $1::timestamptz", (dt.datetime(1999, 12, 31, tzinfo=dt.UTC),)),
    ("SELECT $1::uuid, $2::bytea, $3::float8", (uuid.UUID(int=2**128 - 1), bytes(range(256)), -1e300)),
    ("SELECT $1::text || $2::text, upper($1::text)", ("a", "b")),
    ("SELECT coalesce($1::int, $2::int)", (None, 5)),
    ("SELECT $1::int IS NULL, $1::int = 5", (None,)),
    ("SELECT id = $1, id > $1, NOT (id < $1), id = $1 OR p FROM c ORDER BY id", (1,)),
    ("SELECT EXISTS (SELECT 1 FROM c WHERE id = $1), true, NOT true", (1,)),
    ("SELECT id FROM c WHERE id = ANY($1::int[]) ORDER BY id", ([1, 2, 9],)),
    ("SELECT id FROM c WHERE t = ANY($1::text[])", (["x", "é'\\ %"],)),
    ("SELECT 'Abc' LIKE $1::text, 'Abc' ILIKE $1::text, 'Abc' LIKE $2::text", ("a%", "A__")),
    ("SELECT CASE WHEN i < $1 THEN 'low' ELSE 'high' END FROM c WHERE id = 1", (0,)),
    ("WITH x AS (SELECT id, i FROM c) SELECT x.id, x.i + 1 FROM x WHERE x.id = $1", (1,)),
    ("SELECT s.n FROM (SELECT count(*) AS n, max(f) AS f FROM c) s WHERE s.n > $1", (0,)),
    ("UPDATE c SET i = i + $1, t = $2 WHERE id = $3 RETURNING i, t", (10, "new", 1)),
    ("UPDATE c SET n = $1 WHERE id = $2 RETURNING n", (Decimal("3.1"), 1)),
    ("INSERT INTO c (id, i) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET i = excluded.i RETURNING id, i", (1, 77)),
    ("INSERT INTO c (id, d) VALUES ($1, $2) RETURNING d", (3, dt.date(2021, 1, 1))),
    ("DELETE FROM c WHERE id > $1 AND d < $2 RETURNING id", (2, dt.date(2022, 1, 1))),
    ("SELECT $1::int", ("abc",)),
    ("INSERT INTO c (id) VALUES ($1)", (1,)),
    ("SELECT nosuch FROM c WHERE id = $1", (1,)),
]


def with_psycopg(database: Database, statements: Sequence[Statement], *, binary: bool) -> list[Any]:
    answers: list[Any] = []
    with database.connect() as connection:
        cursor = psycopg.RawCursor(connection)
        for text, parameters in statements:
            try:
                # A new list per statement, so that a prepared statement is never reused.
                cursor.execute(text.encode(), list(parameters), binary=binary)
                answers.append((cursor.rowcount, cursor.fetchall() if cursor.description is not None else None))
            except psycopg.Error as error:
                answers.append(error.sqlstate)
    return answers


async def with_asyncpg(database: Database, statements: Sequence[Statement]) -> list[Any]:
    parts = psycopg.conninfo.conninfo_to_dict(database.dsn)
    connection = await asyncpg.connect(
        host=str(parts["host"]).split(","),
        port=[int(port) for port in str(parts["port"]).split(",")],
        database=parts["dbname"],
        user=parts["user"],
        target_session_attrs="read-write",
    )
    answers: list[Any] = []
    try:
        for text, parameters in statements:
            try:
                prepared = await connection.prepare(text)
                rows = await prepared.fetch(*parameters)
                answers.append((prepared.get_statusmsg(), [tuple(row) for row in rows]))
            except asyncpg.PostgresError as error:
                answers.append(error.sqlstate)
            except asyncpg.DataError as error:
                # The value does not fit the type inferred by one server: then it must not fit the other server's type either.
                answers.append(type(error).__name__)
    finally:
        await connection.close()
    return answers


def fill(database: Database) -> None:
    database.clean()
    with database.connect() as connection:
        connection.execute(TABLE.encode())
        for row in (ROW, NULLS):
            psycopg.RawCursor(connection).execute(INSERT.encode(), row)


@pytest.mark.parametrize("client", ["psycopg", "psycopg-binary", "asyncpg"])
def test_python_values_round_trip_alike(client: str, databases: tuple[Database, Database]) -> None:
    answers: list[list[Any]] = []
    for database in databases:
        fill(database)
        if client == "asyncpg":
            answers.append(asyncio.run(asyncio.wait_for(with_asyncpg(database, STATEMENTS), 60)))
        else:
            answers.append(with_psycopg(database, STATEMENTS, binary=client == "psycopg-binary"))
    wrong = [
        f"{text} {parameters}\n    PostgreSQL: {one}\n    here:       {other}"
        for (text, parameters), one, other in zip(STATEMENTS, *answers, strict=True)
        if repr(one) != repr(other)
    ]
    assert not wrong, f"{len(wrong)} of {len(STATEMENTS)} statements:\n" + "\n".join(wrong)
