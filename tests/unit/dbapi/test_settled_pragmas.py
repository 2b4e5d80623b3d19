from __future__ import annotations

import pytest

from triplicate import dbapi
from triplicate.dbapi.settled_pragmas import settled
from triplicate.testing import DatabaseOfTest


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("PRAGMA foreign_keys = ON", ""),
        ("pragma main.foreign_keys(1);", ""),
        ("pragma journal_mode='WAL'", "select 'wal' as journal_mode"),
        (" pragma synchronous = full ;", ""),
        ("pragma foreign_keys = off", None),
        ("pragma journal_mode = delete", None),
        ("pragma synchronous = off", None),
        ("pragma foreign_keys", "select 1 as foreign_keys"),
        ("pragma user_version = 1", None),
        ("select 1", None),
    ],
)
def test_a_pragma_that_sets_what_is_so_is_known(sql: str, instead: str | None) -> None:
    assert settled(sql) == instead


def test_programs_for_sqlite_make_their_usual_settings(triplicate_database: DatabaseOfTest) -> None:
    connection = triplicate_database.connect()
    connection.execute("pragma foreign_keys = on")
    assert connection.execute("pragma journal_mode = wal").fetchone() == ("wal",)
    assert [connection.execute(f"pragma {name}").fetchone() for name in ("foreign_keys", "journal_mode")] == [(1,), ("wal",)]
    connection.execute("pragma user_version = 7")
    assert connection.execute("pragma user_version").fetchone() == (7,)
    with pytest.raises(dbapi.NotSupportedError):
        connection.execute("pragma foreign_keys = off")
    connection.execute("create table a(id integer primary key)")
    connection.execute("create table b(a references a)")
    with pytest.raises(dbapi.IntegrityError):
        connection.execute("insert into b values (1)")
    connection.close()
