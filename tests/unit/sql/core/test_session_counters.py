"""A session's counters in the place of SQLite's functions."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Prepared, StatementKind
from triplicate.sql.core.session_counters import SessionCounters, may_count


def bound(sql: str, kind: StatementKind = StatementKind.READ, tag: str = "SELECT") -> str:
    counters = SessionCounters()
    counters.changed(Prepared("", StatementKind.WRITE, (), (), "INSERT"), 2, 7)
    counters.changed(Prepared("", StatementKind.WRITE, (), (), "UPDATE"), 3, 0)
    return counters.bound(Prepared(sql, kind, (), (), tag, counts=True)).sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select last_insert_rowid()", "select (0+7)"),
        ('select Changes ( ), "total_changes"(*) + 1', "select (0+3), (0+5) + 1"),
        (
            "select 'changes()', changes, changes(1) -- changes()\n, changes()",
            "select 'changes()', changes, changes(1) -- changes()\n, (0+3)",
        ),
    ],
)
def test_calls_become_values(sql: str, expected: str) -> None:
    assert bound(sql) == expected
    assert may_count(sql)


def test_an_insert_goes_on_from_the_session_s_rowid() -> None:
    sql = "insert into c select last_insert_rowid(), changes()"
    assert bound(sql, StatementKind.WRITE, "INSERT") == "insert into c select last_insert_rowid(), (0+3)"


@pytest.mark.parametrize(
    ("sql", "kind"), [("select * from v", StatementKind.READ), ("create table a as select changes()", StatementKind.SCHEMA)]
)
def test_a_call_elsewhere_is_refused(sql: str, kind: StatementKind) -> None:
    with pytest.raises(SqlError, match="not available in views and definitions") as caught:
        bound(sql, kind)
    assert caught.value.sqlstate == "0A000"
