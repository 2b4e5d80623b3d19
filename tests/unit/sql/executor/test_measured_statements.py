"""Statements whose time SQLite's steps measure, and others, which the event loop never runs."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from triplicate.sql.executor.authorizer import Authorizer
from triplicate.sql.executor.transaction_functions import TransactionContext


@pytest.fixture(scope="module")
def authorizer() -> Iterator[Authorizer]:
    connection = apsw.Connection(":memory:")
    for sql in (
        "create table t(id integer primary key, a text, b int)",
        "create table computed(a text, b text as (a like '%a%a%a%'))",
        "create view v as select a from t",
        "create view patterns as select a from t where a like '%a'",
        "create virtual table f using fts5(a)",
    ):
        connection.execute(sql)
    TransactionContext().register(connection)
    yield Authorizer(connection)
    connection.close(True)


@pytest.mark.parametrize(
    "sql",
    [
        "select a from t where id = $1",
        "select * from t x join t y on x.id = y.b order by x.a limit 3",
        "select a from v",
        "values (1), (2)",
        "select 1",
        "with c as (select a from t) select max(a), count(*) from c where a = 'x'",
        "with recursive c(x) as (select 1 union all select x + 1 from c) select sum(x) from c",
        "select count(*) from t where id < 5",
        "select count(*) from t where a = ? and b = ?",
        "select count(*) from t where a = $1 or b = $1",
        "select triplicate_to_int4('1', 0), substr(a, 1, 2) || a from t",
    ],
)
def test_lookups_and_scans_are_measured(authorizer: Authorizer, sql: str) -> None:
    assert authorizer.examine(sql).is_measured


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from t",
        "select (select count(*) from t)",
        "select a from t where a like '%a%b%'",
        "select a from t where a glob '*a*'",
        "select a from patterns",
        "select a from computed",
        "select a from f",
        "select value from json_each('[1]')",
        "select relname from pg_class",
        "select name from sqlite_schema",
        "select name from pragma_table_list",
        "pragma table_info(t)",
        "explain select a from t",
        "select pg_current_xact_id()",
        "select pg_xact_status(1)",
        "select random()",
        "select nextval('s')",
        "select group_concat(a) from t",
        "insert into t(a) values('x') returning a",
        f"select a from t where id in ({', '.join(map(str, range(2000)))})",
    ],
)
def test_other_statements_are_not(authorizer: Authorizer, sql: str) -> None:
    assert not authorizer.examine(sql).is_measured
