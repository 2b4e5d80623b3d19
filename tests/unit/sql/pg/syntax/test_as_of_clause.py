"""The clause AS OF: where it may stand, and what it names."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.syntax.as_of_clause import AsOfClause, parse_as_of


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("as of position 12", AsOfClause("position", "12")),
        ("AS OF POSITION '12'", AsOfClause("position", "12")),
        ("as /* then */ of\ntime '2026-01-31 11:59+01'", AsOfClause("time", "2026-01-31 11:59+01")),
        ("as of timestamp '2026-01-31'", AsOfClause("time", "2026-01-31")),
        ("as of system time '2026-01-31'", AsOfClause("time", "2026-01-31")),
        ("as of transaction 1099511629824", AsOfClause("transaction", "1099511629824")),
        ("as of time $2", AsOfClause("time", parameter=2)),
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "select a from t",
        "values (1)",
        "(select 1)",
        "with c as (select a from t) select * from c order by 1 limit 3",
        "select a from t as of",
        "select a as of from t",
    ],
)
def test_a_query_ends_with_its_time(query: str, clause: str, expected: AsOfClause) -> None:
    found = parse_as_of(statement_of(f"{query} {clause}"))
    assert found is not None
    assert found.statement.sql == query
    assert [token.text for token in found.statement.tokens] == [token.text for token in statement_of(query).tokens]
    assert found.clause == expected


@pytest.mark.parametrize(
    "sql",
    [
        "select a as of from t",
        "select a as of, b as position from t",
        "select position from t as of where time = 1",
        "select 'as of position 1'",
        'select a as "of" from t',
        "insert into t values (1) -- as of position 1",
        "explain select a from t as of position 1",
        "copy (select a from t as of position 1) to stdout",
        "",
    ],
)
def test_other_statements_are_left_alone(sql: str) -> None:
    assert parse_as_of(statement_of(sql)) is None


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("select a from t as of position 1 where a = 1", "42601"),
        ("select * from (select a from t as of position 1)", "42601"),
        ("with c as (select a from t as of position 1) select * from c", "42601"),
        ("select a from t as of position 1 union select a from t", "42601"),
        ("select a from t as of position", "42601"),
        ("select a from t as of position -1", "42601"),
        ("select a from t as of position 1 + 1", "42601"),
        ("select a from t as of position ?", "42601"),
        ("select a from t as of position $0", "42601"),
        ("insert into t select a from t as of position 1", "0A000"),
        ("update t set a = 1 as of position 1", "0A000"),
        ("delete from t as of position 1", "0A000"),
        ("with c as (select 1) insert into t select * from c as of position 1", "0A000"),
        ("create view v as select a from t as of position 1", "0A000"),
        ("create table v as select a from t as of position 1", "0A000"),
        ("explain query plan select a from t as of position 1", "0A000"),
    ],
)
def test_a_clause_in_any_other_place_is_refused(sql: str, sqlstate: str) -> None:
    with pytest.raises(SqlError, match="AS OF") as refused:
        parse_as_of(statement_of(sql))
    assert refused.value.sqlstate == sqlstate
    assert refused.value.position is not None


def test_a_parameter_gives_the_point_when_it_is_bound() -> None:
    assert AsOfClause("transaction", parameter=2).point(("x", 9)) == "transaction 9"
    assert AsOfClause("time", "2026-01-31").point(()) == "time 2026-01-31"
    with pytest.raises(SqlError, match="must not be null") as refused:
        AsOfClause("position", parameter=1).point((None,))
    assert refused.value.sqlstate == "22004"
