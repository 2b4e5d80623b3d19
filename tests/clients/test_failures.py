"""Servers are killed, stopped or cut off while clients work: the clients' errors, and that no row is lost or duplicated."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.clients.stand import READY_S, Db, Stand, run
from tests.waiting import wait_until

Connection = psycopg.Connection[Any]


def one_value(connection: Connection, query: str, *parameters: object) -> Any:
    row = connection.execute(query.encode(), parameters).fetchone()
    assert row is not None
    return row[0]


def outcome(connection: Connection, transaction: int) -> str | None:
    """The outcome of a transaction after recovery has decided it."""
    deadline = time.monotonic() + READY_S
    while True:
        status = one_value(connection, "SELECT pg_xact_status(%s)", transaction)
        if status != "in progress":
            return str(status) if status is not None else None
        assert time.monotonic() < deadline, f"nobody decides about transaction {transaction}"
        time.sleep(0.02)


def make_table(database: Db) -> None:
    with database.connect() as connection:
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")


def wait_for_copies(database: Db, query: str, value: object) -> None:
    for node in database.stand.ports:
        database.wait_for_value(node, query, value)


def test_transaction_ids_give_the_outcome(database: Db) -> None:
    make_table(database)
    with database.connect() as one, database.connect() as other:
        one.execute("BEGIN")
        committed = one_value(one, "SELECT pg_current_xact_id()")
        assert one_value(one, "SELECT pg_current_xact_id()") == committed
        one.execute("INSERT INTO t VALUES (1, 'x')")
        assert one_value(other, "SELECT pg_xact_status(%s)", committed) == "in progress"
        one.execute("COMMIT")
        one.execute("BEGIN")
        aborted = one_value(one, "SELECT pg_current_xact_id()")
        one.execute("DELETE FROM t")
        one.execute("ROLLBACK")
        assert committed >> 40 == aborted >> 40 > 0
        assert aborted > committed
        assert one_value(other, "SELECT pg_xact_status(%s)", committed) == "committed"
        assert one_value(other, "SELECT pg_xact_status(%s)", aborted) == "aborted"
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            other.execute("SELECT pg_xact_status(%s)", (aborted + 1000,))
        database.wait_for_value(database.followers()[0], f"SELECT pg_xact_status({committed})", "committed")


def test_a_repeated_request_returns_the_same_result_and_changes_nothing(database: Db) -> None:
    make_table(database)
    insert = "INSERT INTO t (b) VALUES ('once'), ('twice') RETURNING a, b"
    with database.connect() as connection:
        connection.execute("SET triplicate.request_id = 'single'")
        first = connection.execute(insert)
        found, count = first.fetchall(), first.rowcount
        connection.execute("SET triplicate.request_id = 'single'")
        again = connection.execute(insert)
        assert (again.fetchall(), again.rowcount) == (found, count) == ([(1, "once"), (2, "twice")], 2)
        for _ in range(2):
            connection.execute("SET triplicate.request_id = 'block'")
            with connection.transaction():
                assert connection.execute("UPDATE t SET b = b || '!'").rowcount == 2
                assert connection.execute("INSERT INTO t (b) VALUES ('third') RETURNING a").fetchall() == [(3,)]
        assert connection.execute("SELECT a, b FROM t").fetchall() == [(1, "once!"), (2, "twice!"), (3, "third")]
        connection.execute("INSERT INTO t (b) VALUES ('unnamed')")
        assert one_value(connection, "SELECT count(*) FROM t") == 4


def test_a_leader_killed_during_a_transaction_leaves_all_or_nothing(stand: Stand, database: Db) -> None:
    make_table(database)
    connection = database.connect()
    connection.execute("SET triplicate.request_id = 'before'")
    inserted = connection.execute("INSERT INTO t VALUES (1, 'kept') RETURNING b").fetchall()
    leader = database.leader()
    connection.execute("BEGIN")
    transaction = one_value(connection, "SELECT pg_current_xact_id()")
    connection.execute("INSERT INTO t VALUES (2, 'lost')")
    stand.kill(leader)
    with pytest.raises(psycopg.OperationalError):
        connection.execute("COMMIT")
    connection.close()
    with database.writable() as again:
        assert database.leader() != leader
        assert outcome(again, transaction) == "aborted"
        assert again.execute("SELECT a FROM t").fetchall() == [(1,)]
        again.execute("SET triplicate.request_id = 'before'")
        assert again.execute("INSERT INTO t VALUES (1, 'kept') RETURNING b").fetchall() == inserted, "the new leader knows the request"
        again.execute("INSERT INTO t VALUES (2, 'new')")
    facts = stand.start(leader)
    assert facts["positions"][database.name] > 0, "it goes on from its own copy"
    wait_for_copies(database, "SELECT group_concat(b) FROM t", "kept,new")


class Writer:
    """Writes numbers, one transaction each, without end: after a failure it reads the last one's outcome from the new leader."""

    def __init__(self, database: Db, count: int) -> None:
        self.database = database
        self.count = count
        self.done = 0
        self.asked: list[str | None] = []
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            for number in range(self.count):
                self._write(number)
                self.done = number + 1
        except BaseException as error:
            self.failure = error

    def _write(self, number: int) -> None:
        transaction: int | None = None
        deadline = time.monotonic() + 2 * READY_S
        while time.monotonic() < deadline:
            try:
                with self.database.writable() as connection:
                    if transaction is not None:
                        self.asked.append(outcome(connection, transaction))
                        if self.asked[-1] == "committed":
                            return
                        transaction = None
                    with connection.transaction():
                        transaction = one_value(connection, "SELECT pg_current_xact_id()")
                        connection.execute("INSERT INTO t VALUES (NULL, %s)", (str(number),))
                return
            except psycopg.OperationalError:
                continue
        raise AssertionError(f"{number} was not written in time")


def test_a_client_that_reads_the_outcome_after_each_loss_writes_everything_once(stand: Stand, database: Db) -> None:
    make_table(database)
    writer = Writer(database, 60)
    writer.thread.start()
    killed: list[str] = []
    try:
        for at in (15, 35):
            wait_until(lambda at=at: writer.done >= at or writer.failure is not None, READY_S, f"{at} numbers are written")  # type: ignore[misc]
            killed.append(database.leader())
            stand.kill(killed[-1])
            if len(killed) == 1:
                wait_until(lambda: writer.done > 20 or writer.failure is not None, 2 * READY_S, "another node leads")
                stand.start(killed[0])
    finally:
        writer.thread.join(3 * READY_S)
        stand.start(killed[-1])
    assert writer.failure is None
    with database.writable() as connection:
        assert [int(row[0]) for row in connection.execute("SELECT b FROM t ORDER BY a")] == list(range(60))
    wait_for_copies(database, "SELECT count(*) FROM t", 60)


def test_a_paused_leader_answers_no_stale_read_and_catches_up(stand: Stand, database: Db) -> None:
    make_table(database)
    leader = database.leader()
    reading, writing, parsing = (database.connect_to(leader) for _ in range(3))
    reading.execute("INSERT INTO t VALUES (1, 'before')")
    writing.execute("BEGIN")
    writing.execute("UPDATE t SET b = 'never'")
    try:
        with stand.stopped(leader), database.writable(2 * READY_S) as other:
            assert database.leader() != leader
            other.execute("UPDATE t SET b = 'after'")
            other.execute("INSERT INTO t VALUES (2, 'after')")
            other.execute("CREATE TABLE made_meanwhile (a)")
        # "No such table" would be a stale answer as well.
        assert refusal(lambda: parsing.execute("SELECT * FROM made_meanwhile")) == "57P01"
        assert refusal(lambda: reading.execute("SELECT b FROM t").fetchall()) == "57P01"
        # The transaction was idle for longer than the limit of one that holds the writer.
        assert refusal(lambda: writing.execute("COMMIT")) in ("57P01", "25P03", None)
    finally:
        for connection in (reading, writing, parsing):
            connection.close()
        if stand.cluster.running[leader].process.poll() is not None:
            stand.start(leader)
    wait_for_copies(database, "SELECT group_concat(b) FROM t", "after,after")


def test_an_idle_leader_notices_that_it_was_replaced(stand: Stand, database: Db) -> None:
    leader = database.leader()
    with stand.stopped(leader):
        database.writable(2 * READY_S).close()

    def follows() -> bool:
        if stand.cluster.running[leader].process.poll() is not None:
            stand.start(leader)
        # The node ends the sessions of its leadership, and perhaps itself, at any moment.
        with contextlib.suppress(psycopg.OperationalError), database.connect_to(leader) as connection:
            return bool(one_value(connection, "SHOW transaction_read_only") == "on")
        return False

    wait_until(follows, READY_S, "it follows without a statement of a client")


def refusal(action: Callable[[], object]) -> str | None:
    """The SQLSTATE that ends the session, or None if the connection broke without one."""
    try:
        answer = action()
    except psycopg.Error as error:
        return error.sqlstate
    raise AssertionError(f"it was answered: {answer}")


def test_a_commit_whose_log_cannot_answer_is_unknown_until_recovery_decides(stand: Stand, database: Db) -> None:
    make_table(database)
    with database.connect() as connection:
        connection.execute("BEGIN")
        transaction = one_value(connection, "SELECT pg_current_xact_id()")
        connection.execute("INSERT INTO t VALUES (1, 'perhaps')")
        with stand.stopped("bookie-2", "bookie-3"), pytest.raises(psycopg.OperationalError) as found:
            connection.execute("COMMIT")
    # On a busy machine another node may take over before the COMMIT arrives. Nothing was sent then, and the answer must say so.
    is_unsent = found.value.sqlstate == "57P01"
    if not is_unsent:
        assert found.value.sqlstate == "08007"
        assert str(transaction) in (found.value.diag.message_detail or "")
    deadline = time.monotonic() + 3 * READY_S
    while True:
        try:
            with database.writable(2 * READY_S) as again:
                decided = outcome(again, transaction)
                rows = [("perhaps",)] if decided == "committed" else []
                assert decided in (("aborted",) if is_unsent else ("committed", "aborted"))
                assert again.execute("SELECT b FROM t").fetchall() == rows
                again.execute("INSERT INTO t VALUES (2, 'sure')")
            break
        except psycopg.errors.AdminShutdown:
            # A node that began to take over while the bookies were away deposes this one. A refused statement did not happen.
            assert time.monotonic() < deadline
    wait_for_copies(database, "SELECT count(*) FROM t", len(rows) + 1)


def test_a_pool_of_asyncpg_finds_the_new_leader(stand: Stand, database: Db) -> None:
    make_table(database)
    leader = database.leader()

    async def body() -> None:
        # Without ssl=False asyncpg leaves a socket open where a node refuses it.
        async with asyncpg.create_pool(
            **database.addresses(), target_session_attrs="read-write", min_size=1, max_size=2, ssl=False
        ) as pool:
            await pool.execute("INSERT INTO t VALUES (1, 'x')")
            stand.kill(leader)
            deadline = time.monotonic() + READY_S
            while True:
                try:
                    await pool.execute("INSERT INTO t VALUES (2, 'y')")
                    break
                except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    assert time.monotonic() < deadline, "the pool finds no leader"
            assert await pool.fetchval("SELECT count(*) FROM t") == 2

    try:
        run(body(), 2 * READY_S)
    finally:
        stand.start(leader)
    wait_for_copies(database, "SELECT count(*) FROM t", 2)
