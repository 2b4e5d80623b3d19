"""COPY with each client: rows in and out, errors that undo all of it, and files of psql."""

from __future__ import annotations

import asyncio
import io
import struct
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.clients.stand import Db, count_rows, run, unique

COLUMNS = "(id INTEGER PRIMARY KEY, name TEXT NOT NULL, price NUMERIC(10,2), at TIMESTAMP, n INTEGER DEFAULT 7)"
ROWS = 30_000


@pytest.fixture
def goods(shared: Db, table: str) -> str:
    with shared.connect() as connection:
        connection.execute(f"CREATE TABLE {table} {COLUMNS}".encode())
    return table


def store(connection: psycopg.Connection[Any], table: str, data: str) -> None:
    with connection.cursor().copy(f"COPY {table} (id, name) FROM STDIN".encode()) as copy:
        copy.write(data)


def test_psycopg_copies_rows_in_and_out(shared: Db, goods: str) -> None:
    rows = [(number, f"tab\there {number}\\", f"{number}.50", None) for number in range(ROWS)]
    with shared.connect() as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY {goods} (id, name, price, at) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)
        assert cursor.rowcount == ROWS
        for text in ("", "(FORMAT csv)", "(FORMAT binary)"):
            with cursor.copy(f"COPY (SELECT id, name FROM {goods} ORDER BY id) TO STDOUT {text}".encode()) as copy:
                if "csv" in text:
                    assert b"".join(copy).count(b"\n") == ROWS
                    continue
                copy.set_types(["int8", "text"])
                assert list(copy.rows()) == [(number, name) for number, name, _, _ in rows]
        assert connection.execute(f"SELECT price, n FROM {goods} WHERE id = 2".encode()).fetchone() == (pytest.approx(2.5), 7)


def test_binary_rows_with_the_types_of_postgresql(shared: Db, goods: str) -> None:
    with shared.connect() as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY {goods} (id, name, price) FROM STDIN (FORMAT binary)".encode()) as copy:
            copy.set_types(["int4", "text", "numeric"])
            for number in range(100):
                copy.write_row((number, "x", number))
        assert count_rows(connection, goods) == 100


@pytest.mark.parametrize(
    ("data", "sqlstate", "context"),
    [
        ("1\tx\n2\n", "22P04", "line 2"),
        ("1\tx\none\ty\n", "22P02", 'line 2, column id: "one"'),
        ("1\tx\n2\t\\N\n", "23502", "line 2"),
        ("1\tx\n1\ty\n", "23505", "line 2"),
        ("".join(f"{number}\tx\n" for number in range(9000)) + "5\tx\n", "23505", "line 9001"),
        (f"1\tx\n2\t{'x' * 5_000_000}\n", "54000", "line 2"),
    ],
)
def test_an_error_stores_nothing_and_names_the_line(shared: Db, goods: str, data: str, sqlstate: str, context: str) -> None:
    with shared.connect() as connection:
        with pytest.raises(psycopg.Error) as refused:
            store(connection, goods, data)
        assert refused.value.sqlstate == sqlstate
        assert f"COPY {goods}, {context}" in str(refused.value.diag.context)
        assert count_rows(connection, goods) == 0
        store(connection, goods, "1\tx\n")
        assert count_rows(connection, goods) == 1


def give_up(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.cursor().copy(f"COPY {table} (id, name) FROM STDIN".encode()) as copy:
        copy.write("".join(f"{number}\tx\n" for number in range(20_000)))
        raise ZeroDivisionError


def test_a_client_that_gives_up_stores_nothing(shared: Db, goods: str) -> None:
    with shared.connect() as connection:
        with pytest.raises(ZeroDivisionError):
            give_up(connection, goods)
        assert count_rows(connection, goods) == 0


def test_copy_within_a_transaction_is_undone_with_it(shared: Db, goods: str) -> None:
    with shared.connect() as connection:
        connection.execute("BEGIN")
        store(connection, goods, "1\tx\n")
        connection.execute("SAVEPOINT s")
        with pytest.raises(psycopg.errors.UniqueViolation):
            store(connection, goods, "2\tx\n1\tx\n")
        connection.execute("ROLLBACK TO s")
        assert count_rows(connection, goods) == 1
        connection.execute("ROLLBACK")
        assert count_rows(connection, goods) == 0


def test_a_follower_refuses_data_and_gives_them(shared: Db, goods: str) -> None:
    with shared.connect() as connection:
        store(connection, goods, "1\tx\n")
    follower = shared.followers()[0]
    shared.wait_for_value(follower, f"SELECT count(*) FROM {goods}", 1)
    with shared.connect_to(follower) as connection:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="cannot execute COPY FROM"):
            store(connection, goods, "2\tx\n")
        with connection.cursor().copy(f"COPY {goods} (id, name) TO STDOUT".encode()) as copy:
            assert b"".join(copy) == b"1\tx\n"


def test_the_rows_of_a_copy_reach_the_followers(shared: Db, goods: str) -> None:
    with shared.connect() as connection:
        store(connection, goods, "".join(f"{number}\tn{number}\n" for number in range(ROWS)))
    expected = ROWS * (ROWS - 1) // 2
    for follower in shared.followers():
        shared.wait_for_value(follower, f"SELECT sum(id) FROM {goods} WHERE name = 'n' || id", expected)


def test_asyncpg_copies_records_and_queries(shared: Db, goods: str) -> None:
    async def body() -> None:
        connection = await shared.asyncpg()
        records = [(number, f"name {number}") for number in range(1000)]
        assert await connection.copy_records_to_table(goods, records=records, columns=["id", "name"]) == "COPY 1000"
        found = io.BytesIO()
        assert await connection.copy_from_query(f"SELECT id, name FROM {goods} WHERE id < $1", 2, output=found) == "COPY 2"
        assert found.getvalue() == b"0\tname 0\n1\tname 1\n"
        csv = io.BytesIO()
        await connection.copy_from_table(goods, output=csv, columns=["id", "name"], format="csv", header=True)
        assert csv.getvalue().startswith(b"id,name\n0,name 0\n")
        source = io.BytesIO(b"5000;'a;b'\n")
        assert (
            await connection.copy_to_table(goods, source=source, columns=["id", "name"], format="csv", delimiter=";", quote="'") == "COPY 1"
        )
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.copy_records_to_table(goods, records=[(5000, "x")], columns=["id", "name"])
        assert await connection.fetchval(f"SELECT name FROM {goods} WHERE id = 5000") == "a;b"
        await connection.close()

    run(body())


def test_psql_copies_files_and_runs_the_output_of_pg_dump(shared: Db, goods: str, tmp_path: Path) -> None:
    there = tmp_path / "goods.csv"
    there.write_text('id,name\n1,one\n2,"two, three"\n')
    answer = shared.psql("-c", f"\\copy {goods} (id, name) from '{there}' with csv header", "-c", f"\\copy {goods} (id, name) to stdout")
    assert (answer.returncode, answer.stdout) == (0, "1\tone\n2\ttwo, three\n"), answer.stderr
    rows = "3\tthree\t1.50\t2024-01-01 00:00:00\t\\N\n4\tfour\t\\N\t\\N\t9\n\\.\n"
    dump = f"COPY public.{goods} (id, name, price, at, n) FROM stdin;\n{rows}\n\nSELECT 1;\n"
    answer = shared.psql("-v", "ON_ERROR_STOP=1", text=dump)
    assert (answer.returncode, answer.stdout) == (0, "1\n"), answer.stderr
    with shared.connect() as connection:
        assert count_rows(connection, goods) == 4


def test_a_session_that_dies_during_the_data_stores_nothing(shared: Db, goods: str) -> None:
    async def body() -> None:
        ports = shared.stand.ports[shared.leader()]
        reader, writer = await asyncio.open_connection("127.0.0.1", ports)
        start = struct.pack(">i", 196608) + f"user\0tester\0database\0{shared.name}\0\0".encode()
        writer.write(struct.pack(">i", len(start) + 4) + start)
        text = f"COPY {goods} (id, name) FROM STDIN".encode() + b"\0"
        writer.write(b"Q" + struct.pack(">i", len(text) + 4) + text)
        rows = b"".join(b"%d\tx\n" % number for number in range(20_000))
        writer.write(b"d" + struct.pack(">i", len(rows) + 4) + rows)
        while b"G\0\0\0" not in await reader.read(10_000):
            pass
        writer.close()
        await writer.wait_closed()

    run(body())
    with shared.connect() as connection:
        connection.execute(f"INSERT INTO {goods} (id, name) VALUES (1, 'x')".encode())  # The writer is free again.
        assert count_rows(connection, goods) == 1


def test_a_database_of_many_copies_has_no_row_twice(shared: Db) -> None:
    """Copies of several connections at the same time, each in its own transaction."""
    name = unique("t")
    with shared.connect() as connection:
        connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, t TEXT)".encode())

    async def one(number: int) -> None:
        async with await shared.connect_async() as connection, connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
            for start in range(number * 5000, number * 5000 + 5000, 500):
                await copy.write("".join(f"{key}\tt\n" for key in range(start, start + 500)))

    async def body() -> None:
        await asyncio.gather(*(one(number) for number in range(4)))

    run(body())
    with shared.connect() as connection:
        assert count_rows(connection, name) == 20_000
        connection.execute(f"DROP TABLE {name}".encode())


@pytest.mark.parametrize("is_explicit", [True, False])
def test_executemany_stores_all_rows_or_none(shared: Db, goods: str, is_explicit: bool) -> None:
    rows = [(number, f"n{number}") for number in range(3000)]

    async def with_asyncpg(first: int, *, fails: bool) -> None:
        connection = await shared.asyncpg()
        more = [(number + first, name) for number, name in rows] + [(first, "again")] * fails
        insert = f"INSERT INTO {goods} (id, name) VALUES ($1, $2)"
        try:
            if is_explicit:
                async with connection.transaction():
                    await connection.executemany(insert, more)
            else:
                await connection.executemany(insert, more)
        finally:
            await connection.close()

    with shared.connect(autocommit=not is_explicit) as connection, connection.cursor() as cursor:
        insert = f"INSERT INTO {goods} (id, name) VALUES (%s, %s)".encode()
        cursor.executemany(insert, rows)
        assert cursor.rowcount == 3000
        connection.commit()
        with pytest.raises(psycopg.errors.UniqueViolation):
            cursor.executemany(insert, [(number + 3000, name) for number, name in [*rows, (-3000, "again")]])
        connection.rollback()
        assert count_rows(connection, goods) == 3000
        connection.commit()
        run(with_asyncpg(3000, fails=False))
        with pytest.raises(asyncpg.UniqueViolationError):
            run(with_asyncpg(6000, fails=True))
        assert count_rows(connection, goods) == 6000
