"""Bad input gets PostgreSQL's SQLSTATE in each client."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.clients.stand import Db, run, sqlstate_of
from tests.waiting import LIMIT_S, wait_until

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def accounts(shared: Db, table: str) -> str:
    with shared.connect() as connection:
        connection.execute(f"CREATE TABLE {table} (a INTEGER PRIMARY KEY, b TEXT NOT NULL UNIQUE, c INTEGER CHECK (c > 0))".encode())
        connection.execute(f"INSERT INTO {table} VALUES (1, 'one', 1)".encode())
    return table


CASES = [
    ("INSERT INTO {t} VALUES (1, 'x', 1)", "23505"),
    ("INSERT INTO {t} VALUES (2, 'one', 1)", "23505"),
    ("INSERT INTO {t} VALUES (2, NULL, 1)", "23502"),
    ("INSERT INTO {t} VALUES (2, 'two', 0)", "23514"),
    ("SELECT * FROM nowhere", "42P01"),
    ("SELECT missing FROM {t}", "42703"),
    ("SELEC 1", "42601"),
    ("SELECT (", "42601"),
    ("SELECT missing(1)", "42883"),
    ("CREATE TABLE {t} (a)", "42P07"),
    ("INSERT INTO {t} VALUES (2, hex(randomblob(2500000)), 1)", "54000"),
    ("VACUUM INTO 'copy'", "0A000"),
    ("ATTACH ':memory:' AS other", "0A000"),
    ("COPY {t} FROM '/etc/passwd'", "0A000"),
    ("LISTEN", "42601"),
    ("SELECT pg_notify('', '')", "22023"),
    ("SET statement_timeout = 'soon'", "22023"),
    ("SET server_version = '16'", "55P02"),
    ("SHOW no_such_thing", "42704"),
    ("SAVEPOINT s", "25P01"),
]


def test_a_broken_constraint_has_postgresql_s_fields(shared: Db, accounts: str) -> None:
    expected = {
        "INSERT INTO {t} VALUES (2, 'one', 1)": ("{t}_b_key", None),
        "INSERT INTO {t} VALUES (2, NULL, 1)": (None, "b"),
        "INSERT INTO {t} VALUES (2, 'two', 0)": ("{t}_c_check", None),
    }
    with shared.connect() as connection:
        for statement, (constraint, column) in expected.items():
            with pytest.raises(psycopg.errors.IntegrityError) as refused:
                connection.execute(statement.format(t=accounts).encode())
            found = refused.value.diag
            assert (found.schema_name, found.table_name, found.column_name) == ("public", accounts, column)
            assert found.constraint_name == (constraint.format(t=accounts) if constraint is not None else None)


@pytest.mark.parametrize(("statement", "sqlstate"), CASES)
def test_a_mistake_gets_postgresql_s_sqlstate_and_changes_nothing(shared: Db, accounts: str, statement: str, sqlstate: str) -> None:
    text = statement.format(t=accounts)

    async def with_asyncpg() -> str | None:
        connection = await shared.asyncpg()
        try:
            await connection.fetch(text)
        except asyncpg.PostgresError as error:
            return str(error.sqlstate)
        finally:
            await connection.close()
        return None

    with shared.connect() as connection:
        assert sqlstate_of(lambda: connection.execute(text.encode())) == sqlstate
        assert connection.execute(f"SELECT a, b, c FROM {accounts}".encode()).fetchall() == [(1, "one", 1)]
    assert run(with_asyncpg()) == sqlstate
    answer = shared.psql("-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", text=text.rstrip(";") + ";\n")
    assert answer.returncode == 3
    assert f"ERROR:  {sqlstate}:" in answer.stderr


def test_a_parameter_that_is_not_of_its_type_is_refused(shared: Db, accounts: str) -> None:
    with shared.connect() as connection:
        for value in ("x", "1.5", ""):
            found = sqlstate_of(lambda value=value: connection.execute(f"SELECT * FROM {accounts} WHERE a = %s".encode(), (value,)))  # type: ignore[misc]
            assert found == "22P02"
        assert sqlstate_of(lambda: connection.execute(f"SELECT * FROM {accounts} WHERE a = %s".encode(), (str(2**63),))) == "22003"
        assert sqlstate_of(lambda: connection.execute("SELECT $1", ())) == "42P02"


def test_an_error_has_its_position_and_its_object(shared: Db) -> None:
    with shared.connect() as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn) as found:
            connection.execute("SELECT 'é', absent FROM (SELECT 1 AS one)")
        assert found.value.diag.statement_position == "13"
        assert "absent" in str(found.value)


def test_an_unknown_database_is_named_with_those_that_there_are(shared: Db) -> None:
    with pytest.raises(psycopg.OperationalError, match='database "nothing" does not exist'):
        psycopg.connect(shared.dsn("any").replace("dbname=shared", "dbname=nothing"))

    async def with_asyncpg() -> None:
        with pytest.raises(asyncpg.InvalidCatalogNameError) as found:
            await asyncpg.connect(**{**shared.addresses(), "database": "nothing"})
        assert found.value.sqlstate == "3D000"
        assert "shared" in found.value.hint

    run(with_asyncpg())
    answer = shared.psql("-d", shared.dsn("any").replace("dbname=shared", "dbname=nothing"), "-c", "SELECT 1")
    assert answer.returncode == 2
    assert 'database "nothing" does not exist' in answer.stderr


def test_a_write_on_a_follower_is_refused_and_the_leader_named(shared: Db, accounts: str) -> None:
    leader = shared.leader()
    follower = next(name for name in shared.stand.ports if name != leader)
    shared.wait_for_value(follower, f"SELECT count(*) FROM {accounts}", 1)
    with shared.connect_to(follower) as connection:
        for statement in (f"DELETE FROM {accounts}", "CREATE TABLE other (a)", "BEGIN IMMEDIATE", f"DROP TABLE {accounts}"):
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction) as found:
                connection.execute(statement.encode())
            assert found.value.diag.message_hint is not None
            assert str(shared.stand.ports[leader]) in found.value.diag.message_hint
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def cancel_when_it_runs(connection: psycopg.Connection[Any], cancelled: threading.Event) -> None:
    """Cancel repeatedly: the first requests may arrive before the statement."""
    while not cancelled.wait(0.05):
        connection.cancel_safe(timeout=5)


def test_cancel_interrupts_a_statement_and_the_session_goes_on(shared: Db) -> None:
    with shared.connect() as connection:
        cancelled = threading.Event()
        thread = threading.Thread(target=cancel_when_it_runs, args=(connection, cancelled))
        thread.start()
        try:
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(ENDLESS.encode())
        finally:
            cancelled.set()
            thread.join()
        wait_until(lambda: _answers(connection), LIMIT_S, "the session goes on after a cancel")


def _answers(connection: psycopg.Connection[Any]) -> bool:
    try:
        return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.errors.QueryCanceled:
        return False  # A late cancel request interrupted this statement.


def test_asyncpg_cancels_a_statement_after_its_timeout(shared: Db) -> None:
    async def body() -> None:
        connection = await shared.asyncpg()
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetchval(ENDLESS, timeout=0.3)
        assert await connection.fetchval("SELECT count(*) FROM (SELECT 1)") == 1
        await connection.close()

    run(body())


def test_statement_timeout_ends_reads_and_writes(shared: Db, accounts: str) -> None:
    with shared.connect() as connection:
        connection.execute("SET statement_timeout = '200ms'")
        started = time.monotonic()
        for statement in (ENDLESS, f"UPDATE {accounts} SET c = ({ENDLESS})"):
            assert sqlstate_of(lambda statement=statement: connection.execute(statement.encode())) == "57014"  # type: ignore[misc]
        assert time.monotonic() - started < 20
        connection.execute("SET statement_timeout = 0")
        connection.execute("BEGIN")
        connection.execute(f"UPDATE {accounts} SET c = 9".encode())
        connection.execute("SET statement_timeout = '200ms'")
        assert sqlstate_of(lambda: connection.execute(f"DELETE FROM {accounts} WHERE c < ({ENDLESS})".encode())) == "57014"
        assert sqlstate_of(lambda: connection.execute("SELECT 1")) == "25P02"
        connection.execute("ROLLBACK")
        connection.execute("SET statement_timeout = 0")
        assert connection.execute(f"SELECT c FROM {accounts}".encode()).fetchone() == (1,)


def test_a_transaction_with_a_row_over_the_limit_is_refused_whole(shared: Db, accounts: str) -> None:
    with shared.connect() as connection:
        connection.execute("BEGIN")
        insert = f"INSERT INTO {accounts} VALUES (%s, hex(randomblob(1000000)), 1)".encode()
        for number in (2, 3):
            connection.execute(insert, (number,))
        large = f"INSERT INTO {accounts} VALUES (4, hex(randomblob(2500000)), 1)".encode()
        assert sqlstate_of(lambda: connection.execute(large)) == "54000"
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        assert connection.execute("COMMIT").statusmessage == "ROLLBACK"
        assert connection.execute(f"SELECT count(*) FROM {accounts}".encode()).fetchone() == (1,)
