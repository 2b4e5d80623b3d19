"""Semantics of BEGIN: a snapshot for reads, the writer with the first change, 40001 if the database has changed in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.pq import TransactionStatus

from tests.clients.stand import Db, run, sqlstate_of

Connection = psycopg.Connection[Any]


@contextmanager
def two(database: Db) -> Iterator[tuple[Connection, Connection]]:
    with database.connect() as one, database.connect() as other:
        one.execute("CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b INTEGER)")
        one.execute("INSERT INTO t VALUES (1, 10)")
        yield one, other


def status(connection: Connection) -> TransactionStatus:
    return connection.info.transaction_status


def value(connection: Connection) -> int:
    row = connection.execute("SELECT b FROM t WHERE a = 1").fetchone()
    assert row is not None
    return int(row[0])


def test_a_transaction_reads_one_snapshot(database: Db) -> None:
    with two(database) as (one, other):
        one.execute("BEGIN")
        assert value(one) == 10
        other.execute("UPDATE t SET b = 11")
        assert value(one) == 10
        one.execute("COMMIT")
        assert value(one) == 11


def test_a_snapshot_begins_with_the_first_read_not_with_begin(database: Db) -> None:
    with two(database) as (one, other):
        one.execute("BEGIN")
        other.execute("UPDATE t SET b = 11")
        assert value(one) == 11
        one.execute("COMMIT")


def test_a_change_on_a_stale_snapshot_is_refused_and_only_rollback_helps(database: Db) -> None:
    with two(database) as (one, other):
        one.execute("BEGIN")
        seen = value(one)
        one.execute("SAVEPOINT s")
        other.execute("UPDATE t SET b = b + 1")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.execute("UPDATE t SET b = %s", (seen + 5,))
        assert status(one) == TransactionStatus.INERROR
        assert sqlstate_of(lambda: value(one)) == "25P02"
        assert sqlstate_of(lambda: one.execute("ROLLBACK TO s")) == "25P02"
        assert sqlstate_of(lambda: value(one)) == "25P02"
        one.execute("ROLLBACK")
        assert value(one) == 11, "the update of the other is not lost"
        one.execute("BEGIN")
        one.execute("UPDATE t SET b = b + 5")
        one.execute("COMMIT")
        assert value(other) == 16


def test_a_transaction_that_begins_with_a_change_waits_and_never_fails(database: Db) -> None:
    with two(database) as (one, other):
        for begin in ("BEGIN", "BEGIN IMMEDIATE"):
            one.execute("BEGIN")
            one.execute("UPDATE t SET b = b + 1")
            waiting = threading.Thread(target=_add_one, args=(other, begin))
            waiting.start()
            waiting.join(0.2)
            assert waiting.is_alive(), "the other waits for the writer"
            before = value(one)
            one.execute("COMMIT")
            waiting.join(10)
            assert not waiting.is_alive()
            assert value(one) == before + 1


def _add_one(connection: Connection, begin: str) -> None:
    connection.execute(begin.encode())
    connection.execute("UPDATE t SET b = b + 1")
    connection.execute("COMMIT")


@pytest.mark.parametrize(
    "change",
    [
        "COPY u FROM STDIN",
        "COPY u FROM STDIN WITH (ACTION upsert)",
        "COPY u FROM STDIN WITH (ACTION delete)",
        "TRUNCATE u",
        "INSERT INTO u SELECT a + 100 FROM t",
        "CREATE TABLE v (a INTEGER)",
        "ALTER TABLE u ADD COLUMN b INTEGER",
        "CREATE INDEX i ON u (a)",
        "GRANT SELECT ON u TO PUBLIC",
        "NOTIFY c, 'x'",
    ],
)
def test_each_kind_of_change_waits_as_the_first_of_a_transaction(database: Db, change: str) -> None:
    failures: list[psycopg.Error] = []

    def run_change(connection: Connection) -> None:
        try:
            connection.execute("BEGIN")
            if change.startswith("COPY"):
                with connection.cursor().copy(change.encode()) as copy:
                    copy.write("5\n")
            else:
                connection.execute(change.encode())
            connection.execute("COMMIT")
        except psycopg.Error as error:
            failures.append(error)

    with two(database) as (one, other):
        one.execute("CREATE TABLE u (a INTEGER PRIMARY KEY)")
        one.execute("BEGIN")
        one.execute("UPDATE t SET b = b + 1")
        waiting = threading.Thread(target=run_change, args=(other,))
        waiting.start()
        waiting.join(0.2)
        one.execute("COMMIT")
        waiting.join(10)
        assert not waiting.is_alive()
        assert failures == []


def test_many_increments_at_once_are_all_there(database: Db) -> None:
    failures: list[str | None] = []

    def increments(count: int) -> None:
        with database.connect() as connection:
            done = 0
            while done < count:
                try:
                    with connection.transaction():
                        connection.execute("UPDATE t SET b = %s", (value(connection) + 1,))
                    done += 1
                except psycopg.errors.SerializationFailure as error:
                    failures.append(error.sqlstate)

    with two(database) as (one, _):
        threads = [threading.Thread(target=increments, args=(15,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert value(one) == 10 + 45
    assert set(failures) <= {"40001"}


def test_an_error_fails_the_transaction_and_commit_rolls_it_back(database: Db) -> None:
    with two(database) as (one, _):
        one.execute("BEGIN")
        one.execute("UPDATE t SET b = 99")
        assert sqlstate_of(lambda: one.execute("INSERT INTO t VALUES (1, 0)")) == "23505"
        assert status(one) == TransactionStatus.INERROR
        assert sqlstate_of(lambda: one.execute("SELECT 1")) == "25P02"
        assert sqlstate_of(lambda: one.execute("UPDATE t SET b = 98")) == "25P02"
        assert one.execute("COMMIT").statusmessage == "ROLLBACK"
        assert status(one) == TransactionStatus.IDLE
        assert value(one) == 10


def test_savepoints_undo_later_changes(database: Db) -> None:
    with two(database) as (one, other):
        one.execute("BEGIN")
        one.execute("UPDATE t SET b = 20")
        one.execute("SAVEPOINT s")
        one.execute("UPDATE t SET b = 30")
        assert sqlstate_of(lambda: one.execute("SELECT absent FROM t")) == "42703"
        one.execute("ROLLBACK TO SAVEPOINT s")
        assert status(one) == TransactionStatus.INTRANS
        assert value(one) == 20
        one.execute("SAVEPOINT inner_one")
        one.execute("INSERT INTO t VALUES (2, 2)")
        one.execute("RELEASE SAVEPOINT inner_one")
        assert sqlstate_of(lambda: one.execute("ROLLBACK TO inner_one")) == "3B001"
        one.execute("ROLLBACK TO s")
        assert value(other) == 10, "nobody sees it before it is committed"
        one.execute("COMMIT")
        assert value(other) == 20
        assert other.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_nested_blocks_of_psycopg_are_savepoints(database: Db) -> None:
    with two(database) as (one, _):
        with one.transaction():
            one.execute("UPDATE t SET b = 1")
            with pytest.raises(psycopg.errors.UniqueViolation), one.transaction():
                one.execute("INSERT INTO t VALUES (1, 1)")
            with one.transaction():
                one.execute("INSERT INTO t VALUES (5, 5)")
        assert one.execute("SELECT a, b FROM t ORDER BY a").fetchall() == [(1, 1), (5, 5)]


def test_schema_changes_belong_to_the_transaction(database: Db) -> None:
    with two(database) as (one, other):
        one.execute("BEGIN")
        one.execute("CREATE TABLE u (x INTEGER)")
        one.execute("INSERT INTO u VALUES (1)")
        assert sqlstate_of(lambda: other.execute("SELECT * FROM u")) == "42P01"
        one.execute("ROLLBACK")
        assert sqlstate_of(lambda: one.execute("SELECT * FROM u")) == "42P01"
        with one.transaction():
            one.execute("CREATE TABLE u (x INTEGER)")
        assert other.execute("SELECT count(*) FROM u").fetchone() == (0,)
        other.execute("ALTER TABLE u ADD COLUMN y TEXT")
        for connection in (one, other):
            assert [column.name for column in connection.execute("SELECT * FROM u").description or ()] == ["x", "y"]
        one.execute("DROP TABLE IF EXISTS u")
        other.execute("CREATE TABLE IF NOT EXISTS u (x INTEGER)")


def test_statements_of_one_simple_query_are_one_transaction(database: Db) -> None:
    answer = database.psql("-c", "CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
    assert answer.returncode == 1
    assert 'duplicate key value violates unique constraint "t_pkey"' in answer.stderr
    assert "no such table" in database.psql("-c", "SELECT * FROM t").stderr
    answer = database.psql("-c", "CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2); SELECT count(*) FROM t")
    assert answer.stdout == "2\n"


def test_warnings_come_where_postgresql_gives_them(database: Db) -> None:
    with database.connect() as connection:
        notices: list[str | None] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.sqlstate))
        connection.execute("COMMIT")
        connection.execute("BEGIN")
        connection.execute("BEGIN")
        connection.execute("ROLLBACK")
        assert notices == ["25P01", "25001"]


def test_isolation_levels_are_accepted_and_all_are_serializable(database: Db) -> None:
    with database.connect(autocommit=False) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
        connection.commit()

    async def with_asyncpg() -> None:
        client = await database.asyncpg()
        await client.execute("CREATE TABLE t (a INTEGER)")
        async with client.transaction(isolation="serializable"):
            await client.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(asyncpg.UndefinedTableError):
                async with client.transaction():
                    await client.execute("INSERT INTO nowhere VALUES (1)")
        assert await client.fetchval("SELECT count(*) FROM t") == 1
        await client.close()

    run(with_asyncpg())


def test_a_client_that_leaves_during_a_transaction_changes_nothing(database: Db) -> None:
    with two(database) as (one, other):
        one.execute("BEGIN IMMEDIATE")
        one.execute("UPDATE t SET b = 0")
        one.close()
        other.execute("UPDATE t SET b = b + 1")  # Waits until the server has noticed.
        assert value(other) == 11
