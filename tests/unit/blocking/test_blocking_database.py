from __future__ import annotations

import threading
from pathlib import Path

import pytest

import triplicate
from triplicate.errors import HandleClosed, SqlError


def test_a_database_is_used_without_await(tmp_path: Path) -> None:
    with triplicate.blocking.database(tmp_path / "app", "notes") as database:
        assert (database.name, database.is_leader, database.address) == ("notes", True, None)
        database.execute("create table t(a unique)")
        with database.transaction() as transaction:
            transaction.execute("insert into t values (?)", (1,))
            transaction.execute_many("insert into t values (?)", ((number,) for number in (2, 3)))

        def fails() -> None:
            with database.transaction() as transaction:
                transaction.execute("delete from t")
                transaction.execute("insert into t values (7), (7)")

        with pytest.raises(SqlError, match="UNIQUE"):
            fails()
        assert [row[0] for row in database.stream("select a from t order by a")] == [1, 2, 3]
    database.close()
    with pytest.raises(HandleClosed):
        database.execute("select 1")


def test_threads_use_a_database_at_the_same_time() -> None:
    with triplicate.blocking.database("memory:") as database:
        database.execute("create table t(a)")

        def add(number: int) -> None:
            with database.transaction(immediate=True) as transaction:
                transaction.execute("insert into t values (?)", (number,))

        threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert database.execute("select count(*), sum(a) from t").rows == [(8, 28)]
