"""PEP 249 for modules and connections, and the habits of `sqlite3`, which the same test runs against `sqlite3` itself where it can."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until
from triplicate import dbapi
from triplicate.testing import DatabaseOfTest

Connect = Callable[..., Any]
WITH_AUTOCOMMIT = ["triplicate", *(["sqlite3"] if sys.version_info >= (3, 12) else [])]
"""sqlite3 has the parameter since Python 3.12."""


@pytest.fixture(params=["triplicate", "sqlite3"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """Connects to one empty database, by either module."""
    opened: list[Any] = []
    if request.param == "triplicate":
        database: DatabaseOfTest = request.getfixturevalue("triplicate_database")
        make: Connect = database.connect
    else:

        def make(**options: Any) -> Any:
            return sqlite3.connect(tmp_path / "db", **options)

    def opening(**options: Any) -> Any:
        opened.append(make(**options))
        return opened[-1]

    yield opening
    for connection in opened:
        connection.close()


def rows(connection: Any) -> list[Any]:
    return [row[0] for row in connection.execute("select a from t order by a")]


# The module.


def test_the_module_has_the_names_of_pep_249() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 3, "qmark")
    tree = {
        dbapi.Warning: Exception,
        dbapi.Error: Exception,
        dbapi.InterfaceError: dbapi.Error,
        dbapi.DatabaseError: dbapi.Error,
        dbapi.DataError: dbapi.DatabaseError,
        dbapi.OperationalError: dbapi.DatabaseError,
        dbapi.IntegrityError: dbapi.DatabaseError,
        dbapi.InternalError: dbapi.DatabaseError,
        dbapi.ProgrammingError: dbapi.DatabaseError,
        dbapi.NotSupportedError: dbapi.DatabaseError,
    }
    assert all(error.__bases__ == (base,) for error, base in tree.items())
    assert all(getattr(dbapi.Connection, error.__name__) is error for error in tree)


# Transactions.


def test_a_change_begins_a_transaction_and_others_do_not_see_it_before_the_commit(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("create table t(a)")
    assert not one.in_transaction
    one.execute("insert into t values (1)")
    assert one.in_transaction
    assert (rows(one), rows(other)) == ([1], [])
    one.commit()
    assert not one.in_transaction
    assert rows(other) == [1]


def test_a_rollback_undoes_the_transaction(connect: Connect) -> None:
    connection = connect()
    connection.execute("create table t(a)")
    connection.execute("insert into t values (1)")
    connection.commit()
    connection.execute("insert into t values (2)")
    connection.executemany("insert into t values (?)", [(3,), (4,)])
    connection.rollback()
    assert not connection.in_transaction
    assert rows(connection) == [1]


def test_closing_without_a_commit_undoes_the_transaction(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("create table t(a)")
    one.execute("insert into t values (1)")
    one.close()
    assert rows(other) == []
    other.execute("insert into t values (2)")
    other.commit()


def test_a_failed_statement_leaves_the_transaction_open_and_whole(connect: Connect) -> None:
    connection = connect()
    connection.execute("create table t(a unique)")
    connection.execute("insert into t values (1)")
    with pytest.raises(connection.IntegrityError):
        connection.execute("insert into t values (2), (1)")
    connection.execute("insert into t values (3)")
    connection.commit()
    assert rows(connection) == [1, 3]


def test_the_block_of_a_connection_is_a_transaction(connect: Connect) -> None:
    connection = connect()
    connection.execute("create table t(a unique)")
    with connection:
        connection.execute("insert into t values (1)")

    def fails() -> None:
        with connection:
            connection.execute("insert into t values (2)")
            connection.execute("insert into t values (1)")

    with pytest.raises(connection.IntegrityError):
        fails()
    assert not connection.in_transaction
    assert rows(connection) == [1]


def test_without_an_isolation_level_each_change_is_a_transaction(connect: Connect) -> None:
    connection = connect(isolation_level=None)
    connection.execute("create table t(a)")
    connection.execute("insert into t values (1)")
    assert not connection.in_transaction
    connection.execute("begin")
    connection.execute("insert into t values (2)")
    assert connection.in_transaction
    connection.execute("rollback")
    assert rows(connection) == [1]


def test_the_isolation_level_can_be_changed(connect: Connect) -> None:
    connection = connect(isolation_level="IMMEDIATE")
    connection.execute("create table t(a)")
    connection.execute("insert into t values (1)")
    assert connection.isolation_level == "IMMEDIATE"
    connection.isolation_level = None
    assert not connection.in_transaction
    assert rows(connection) == [1]


@pytest.mark.parametrize("connect", WITH_AUTOCOMMIT, indirect=True)
def test_with_autocommit_false_a_transaction_is_always_open(connect: Connect) -> None:
    connection = connect(autocommit=False)
    assert connection.in_transaction
    connection.execute("create table t(a)")
    connection.commit()
    assert connection.in_transaction
    connection.execute("insert into t values (1)")
    connection.rollback()
    assert connection.in_transaction
    assert rows(connection) == []
    connection.autocommit = True
    assert not connection.in_transaction


@pytest.mark.parametrize("connect", WITH_AUTOCOMMIT, indirect=True)
def test_with_autocommit_true_commit_and_rollback_have_no_effect(connect: Connect) -> None:
    connection = connect(autocommit=True)
    connection.execute("create table t(a)")
    connection.execute("insert into t values (1)")
    connection.rollback()
    assert rows(connection) == [1]
    connection.execute("begin")
    connection.execute("insert into t values (2)")
    connection.commit()
    assert connection.in_transaction
    connection.autocommit = False
    assert connection.in_transaction
    connection.rollback()
    assert rows(connection) == [1]


def test_a_script_commits_before_it_runs(connect: Connect) -> None:
    connection = connect()
    connection.execute("create table t(a)")
    connection.execute("insert into t values (1)")
    connection.executescript("insert into t values (2); create table u(b); insert into t values (3);")
    connection.rollback()
    assert rows(connection) == [1, 2, 3]


def test_a_transaction_that_read_before_others_wrote_may_not_write(connect: Connect) -> None:
    one, other = connect(isolation_level=None), connect(isolation_level=None)
    one.execute("pragma journal_mode" if isinstance(one, dbapi.Connection) else "pragma journal_mode = wal").fetchall()
    one.execute("create table t(a)")
    one.execute("begin")
    assert rows(one) == []
    other.execute("insert into t values (1)")
    assert rows(one) == []
    with pytest.raises(one.OperationalError):
        one.execute("insert into t values (2)")
    one.execute("rollback")
    assert rows(one) == [1]


def test_changes_are_counted(connect: Connect) -> None:
    connection = connect()
    connection.execute("create table t(a)")
    connection.executemany("insert into t values (?)", [(1,), (2,)])
    connection.execute("delete from t where a = 1")
    connection.commit()
    assert connection.total_changes == 3


# Threads, processes and the end.


def test_a_closed_connection_is_refused(connect: Connect) -> None:
    connection = connect()
    cursor = connection.cursor()
    connection.close()
    connection.close()
    for use in (connection.commit, connection.rollback, connection.cursor, cursor.fetchone, lambda: cursor.execute("select 1")):
        with pytest.raises(connection.ProgrammingError):
            use()


def in_thread(work: Callable[[], Any]) -> list[Any]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found


def test_another_thread_is_refused_unless_it_is_allowed(connect: Connect) -> None:
    strict, shared = connect(), connect(check_same_thread=False)
    (refusal,) = in_thread(lambda: strict.execute("select 1"))
    assert isinstance(refusal, strict.ProgrammingError)
    assert in_thread(lambda: shared.execute("select 1").fetchone()) == [(1,)]


def test_a_statement_is_interrupted_from_another_thread(connect: Connect) -> None:
    connection = connect(check_same_thread=False)
    endless = "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c"
    found: list[Any] = []

    def run() -> None:
        try:
            connection.execute(endless).fetchall()
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def is_interrupted() -> bool:
        connection.interrupt()
        return bool(found)

    wait_until(is_interrupted, 30, "the statement is interrupted")
    thread.join()
    assert isinstance(found[0], connection.OperationalError)
    assert connection.execute("select 1").fetchone() == (1,)


def test_a_dropped_connection_gives_up_its_transaction(triplicate_database: DatabaseOfTest) -> None:
    other = triplicate_database.connect()
    other.execute("create table t(a)")
    dropped = triplicate_database.connect()
    dropped.execute("insert into t values (1)")
    dropped.row_factory = dropped.cursor  # A circle, which the collector finds.
    del dropped
    with pytest.warns(ResourceWarning, match="dropped without being closed"):
        gc.collect()
    other.execute("insert into t values (2)")
    other.commit()
    assert rows(other) == [2]
    other.close()


def test_a_connection_is_refused_after_a_fork(triplicate_database: DatabaseOfTest, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = triplicate_database.connect()
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    with pytest.raises(dbapi.ProgrammingError, match="before a fork"):
        connection.execute("select 1")
    monkeypatch.undo()
    connection.close()


# Errors.


@pytest.mark.parametrize(
    ("sql", "parameters", "error", "sqlstate"),
    [
        ("selec 1", (), dbapi.ProgrammingError, "42601"),
        ("select * from missing", (), dbapi.ProgrammingError, "42P01"),
        ("select ?", (), dbapi.ProgrammingError, "08P01"),
        ("select :a", {"b": 1}, dbapi.ProgrammingError, "08P01"),
        ("select ?", (object(),), dbapi.ProgrammingError, "42804"),
        ("select ?", (2**63,), dbapi.DataError, "22003"),
        ("insert into t values (null)", (), dbapi.IntegrityError, "23502"),
        ("attach 'x' as x", (), dbapi.NotSupportedError, "0A000"),
        ("select 1; select 2", (), dbapi.ProgrammingError, "42601"),
    ],
)
def test_errors_have_the_classes_of_pep_249_and_sqlstates(
    triplicate_database: DatabaseOfTest, sql: str, parameters: Any, error: type[dbapi.Error], sqlstate: str
) -> None:
    triplicate_database.execute("create table t(a not null)")
    connection = triplicate_database.connect()
    with pytest.raises(dbapi.Error) as failure:
        connection.execute(sql, parameters)
    assert (type(failure.value), failure.value.sqlstate) == (error, sqlstate)
    connection.close()


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    for options in ({"isolation_level": "SERIAL"}, {"autocommit": 7}):
        with pytest.raises(dbapi.ProgrammingError):
            dbapi.connect(tmp_path / "a", **options)
    with pytest.raises(dbapi.ProgrammingError, match="no place of a database"):
        dbapi.connect("postgresql://x/y")
    assert not (tmp_path / "a").exists()
