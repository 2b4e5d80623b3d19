"""The protocol as clients use it: pipelines, prepared statements, portals, pools."""

from __future__ import annotations

from typing import Any

import asyncpg
import psycopg
import pytest

from tests.clients.stand import Db, count_rows, run, sqlstate_of


def series(last: int, first: int = 1) -> str:
    """A query of the integers from first to last; SQLite has no generate_series of its own."""
    return f"WITH RECURSIVE s (value) AS (SELECT {first} UNION ALL SELECT value + 1 FROM s WHERE value < {last}) SELECT value FROM s"


@pytest.fixture
def numbers(shared: Db, table: str) -> str:
    with shared.connect() as connection:
        connection.execute(f"CREATE TABLE {table} (a INTEGER PRIMARY KEY, b TEXT)".encode())
    return table


def in_pipeline(connection: psycopg.Connection[Any], statement: bytes, keys: list[int]) -> None:
    with connection.pipeline():
        for key in keys:
            connection.execute(statement, (key,))


# psycopg.


def test_a_pipeline_of_psycopg_runs_to_its_end(shared: Db, numbers: str) -> None:
    insert = f"INSERT INTO {numbers} VALUES (%s, %s) RETURNING a".encode()
    with shared.connect() as connection:
        with connection.pipeline() as pipeline:
            cursors = [connection.cursor().execute(insert, (n, f"n{n}")) for n in range(20)]
            pipeline.sync()
            assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(20)]
        assert count_rows(connection, numbers) == 20


def test_an_error_in_a_pipeline_skips_to_sync_and_rolls_back(shared: Db, numbers: str) -> None:
    insert = f"INSERT INTO {numbers} VALUES (%s, 'x')".encode()
    with shared.connect() as connection:
        assert sqlstate_of(lambda: in_pipeline(connection, insert, [1, 2, 1, 3])) == "23505"
        assert count_rows(connection, numbers) == 0
        with connection.pipeline() as pipeline:
            connection.execute(insert, (1,))
            pipeline.sync()
            connection.execute(insert, (2,))
        assert count_rows(connection, numbers) == 2


def test_a_transaction_inside_a_pipeline_is_atomic(shared: Db, numbers: str) -> None:
    with shared.connect() as connection:
        with connection.pipeline(), connection.transaction():
            for key in range(5):
                connection.execute(f"INSERT INTO {numbers} VALUES (%s, 'x')".encode(), (key,))
        assert count_rows(connection, numbers) == 5


def test_executemany_inserts_all_or_nothing(shared: Db, numbers: str) -> None:
    insert = f"INSERT INTO {numbers} VALUES (%s, %s)".encode()
    with shared.connect() as connection:
        cursor = connection.cursor()
        cursor.executemany(insert, [(n, str(n)) for n in range(500)])
        assert cursor.rowcount == 500
        assert sqlstate_of(lambda: cursor.executemany(insert, [(1000, "new"), (7, "there already")])) == "23505"
        assert count_rows(connection, numbers) == 500
        cursor.executemany(f"UPDATE {numbers} SET b = %s WHERE a = %s RETURNING b".encode(), [("x", 1), ("y", 2)], returning=True)
        found = []
        while True:
            found += cursor.fetchall()
            if not cursor.nextset():
                break
        assert found == [("x",), ("y",)]


def test_prepared_statements_of_psycopg_survive_errors_and_can_be_dropped(shared: Db, numbers: str) -> None:
    with shared.connect() as connection:
        connection.prepare_threshold = 0
        insert = f"INSERT INTO {numbers} VALUES (%s, 'x')".encode()
        for key in range(5):
            connection.execute(insert, (key,))
        assert sqlstate_of(lambda: connection.execute(insert, (1,))) == "23505"
        connection.execute(insert, (9,))
        assert count_rows(connection, numbers) == 6
        connection.execute("DEALLOCATE ALL")
        connection.prepare_threshold = None
        assert count_rows(connection, numbers) == 6


def test_a_prepared_query_follows_a_change_of_the_schema(shared: Db, numbers: str) -> None:
    query = f"SELECT * FROM {numbers}".encode()
    with shared.connect() as connection, shared.connect() as other:
        connection.execute(f"INSERT INTO {numbers} VALUES (1, 'x')".encode())
        assert connection.execute(query, prepare=True).fetchall() == [(1, "x")]
        other.execute(f"ALTER TABLE {numbers} ADD COLUMN c INTEGER DEFAULT 3".encode())
        assert sqlstate_of(lambda: connection.execute(query, prepare=True)) == "0A000"
        assert connection.execute(query, prepare=False).fetchall() == [(1, "x", 3)]


def test_a_large_result_comes_in_order_and_may_be_left_early(shared: Db, numbers: str) -> None:
    with shared.connect() as connection:
        connection.execute(f"INSERT INTO {numbers} SELECT value, 'v' || value FROM ({series(20000)})".encode())
        keys = [row[0] for row in connection.cursor().stream(f"SELECT a FROM {numbers} ORDER BY a".encode())]
        assert keys == list(range(1, 20001))
        for number, _ in enumerate(connection.cursor().stream(f"SELECT a, b FROM {numbers}".encode())):
            if number == 10:
                break
        assert count_rows(connection, numbers) == 20000


def test_psycopg_without_waiting_for_others(shared: Db, numbers: str) -> None:
    async def body() -> None:
        async with await shared.connect_async() as connection:
            async with connection.transaction():
                cursor = await connection.execute(f"INSERT INTO {numbers} VALUES (1, 'a'), (2, 'b')".encode())
                assert (cursor.rowcount, cursor.statusmessage) == (2, "INSERT 0 2")
            async with connection.pipeline():
                first = await connection.execute(f"UPDATE {numbers} SET b = 'c'".encode())
                second = await connection.execute(f"DELETE FROM {numbers} WHERE a = 1".encode())
            assert (first.statusmessage, second.statusmessage) == ("UPDATE 2", "DELETE 1")
            rows = await connection.execute(f"SELECT * FROM {numbers}".encode(), binary=True)
            assert await rows.fetchall() == [(2, "c")]

    run(body())


def test_a_server_side_cursor_is_refused_with_an_alternative(shared: Db) -> None:
    with shared.connect() as connection:
        with pytest.raises(psycopg.errors.FeatureNotSupported) as found:
            connection.execute("DECLARE c CURSOR FOR SELECT 1")
        assert found.value.diag.message_hint


# asyncpg.


def test_prepared_statements_of_asyncpg(shared: Db, numbers: str) -> None:
    async def body() -> None:
        connection = await shared.asyncpg()
        insert = await connection.prepare(f"INSERT INTO {numbers} VALUES ($1, $2) RETURNING a, b")
        assert [tuple(await insert.fetchrow(n, f"n{n}")) for n in range(3)] == [(0, "n0"), (1, "n1"), (2, "n2")]
        await insert.executemany([(n, None) for n in range(10, 200)])
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.executemany(f"INSERT INTO {numbers} VALUES ($1, 'x')", [(1000,), (10,)])
        assert await connection.fetchval(f"SELECT count(*) FROM {numbers}") == 193
        assert await connection.execute(f"DELETE FROM {numbers} WHERE a > $1", 50) == "DELETE 149"
        await connection.close()

    run(body())


def test_cursors_of_asyncpg_fetch_in_parts(shared: Db, numbers: str) -> None:
    async def body() -> None:
        connection = await shared.asyncpg()
        await connection.execute(f"INSERT INTO {numbers} SELECT value, 'x' FROM ({series(1000)})")
        async with connection.transaction():
            keys = [row["a"] async for row in connection.cursor(f"SELECT a FROM {numbers} ORDER BY a", prefetch=33)]
            assert keys == list(range(1, 1001))
            cursor = await connection.cursor(f"SELECT a FROM {numbers} ORDER BY a")
            assert [row[0] for row in await cursor.fetch(3)] == [1, 2, 3]
            await connection.execute(f"DELETE FROM {numbers}")
            assert [row[0] for row in await cursor.fetch(2)] == [4, 5], "an open portal keeps what it began to read"
        assert await connection.fetchval(f"SELECT count(*) FROM {numbers}") == 0
        await connection.close()

    run(body())


def test_a_pool_of_asyncpg_resets_the_session(shared: Db, numbers: str) -> None:
    async def body() -> None:
        async with asyncpg.create_pool(**shared.addresses(), target_session_attrs="read-write", min_size=1, max_size=1) as pool:
            async with pool.acquire() as connection:
                await connection.execute("SET application_name = 'left behind'")
                await connection.execute("BEGIN")
                await connection.execute(f"INSERT INTO {numbers} VALUES (1, 'never committed')")
            async with pool.acquire() as connection:
                assert await connection.fetchval("SHOW application_name") == ""
                assert await connection.fetchval(f"SELECT count(*) FROM {numbers}") == 0
                await connection.execute(f"INSERT INTO {numbers} VALUES (1, 'committed')")
            assert await pool.fetchval(f"SELECT b FROM {numbers}") == "committed"

    run(body())


# psql.


def test_psql_binds_parameters_and_runs_each_row_of_a_query(shared: Db, numbers: str) -> None:
    script = (
        f"INSERT INTO {numbers} VALUES (1, :'name');\n"
        f"SELECT a + 1 AS next FROM {numbers} \\gset\n"
        f"INSERT INTO {numbers} VALUES (:next, 'second');\n"
        f"SELECT 'INSERT INTO {numbers} VALUES (' || value || ', ''made'')' FROM ({series(12, first=10)}) \\gexec\n"
        f"BEGIN;\nDELETE FROM {numbers};\nROLLBACK;\n"
        f"SELECT a, b FROM {numbers} ORDER BY a;\n"
    )
    answer = shared.psql("-v", "ON_ERROR_STOP=1", "-v", "name=it's", text=script)
    assert answer.stderr == ""
    assert answer.stdout.splitlines() == ["1|it's", "2|second", "10|made", "11|made", "12|made"]


def test_psql_fetches_a_large_result_and_goes_on_after_errors(shared: Db, numbers: str) -> None:
    script = (
        f"INSERT INTO {numbers} SELECT value, 'x' FROM ({series(5000)});\n"
        f"SELECT * FROM nowhere;\nBEGIN;\nSELECT 1/;\nCOMMIT;\nSELECT count(*) FROM {numbers};\n"
    )
    answer = shared.psql(text=script)
    assert answer.stdout == "5000\n"
    assert answer.stderr.count("ERROR") == 2
    listing = shared.psql("-c", f"SELECT a FROM {numbers} ORDER BY a")
    assert listing.stdout.splitlines() == [str(n) for n in range(1, 5001)]


def test_triggers_and_quoted_semicolons_are_not_split(shared: Db, numbers: str) -> None:
    trigger = (
        f"CREATE TRIGGER {numbers}_twice AFTER INSERT ON {numbers} WHEN new.a < 100 BEGIN\n"
        f"  INSERT INTO {numbers} VALUES (new.a + 100, CASE WHEN new.b = ';' THEN 'semicolon' ELSE 'other' END);\n"
        f"  UPDATE {numbers} SET b = b || '!' WHERE a = new.a;\nEND"
    )
    insert = f"INSERT INTO {numbers} VALUES (1, ';'), (2, 'x;y'); -- a comment; with one\n"
    with shared.connect() as connection:
        connection.execute(f"{trigger}; {insert}".encode())
        found = connection.execute(f"SELECT a, b FROM {numbers} ORDER BY a".encode()).fetchall()
    assert found == [(1, ";!"), (2, "x;y!"), (101, "semicolon"), (102, "other")]
    follower = next(name for name in shared.stand.ports if name != shared.leader())
    shared.wait_for_value(follower, f"SELECT group_concat(b, '|') FROM (SELECT b FROM {numbers} ORDER BY a)", ";!|x;y!|semicolon|other")
