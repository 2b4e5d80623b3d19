"""Calls that the session answers, and those that nobody answers."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.rewrite.session_calls import session_calls


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT set_config(name, 'view, foreign-table', false) FROM pg_settings WHERE name = 'restrict_nonsystem_relation_kind'",
        "select 1, set_config('a.b', 'c', false)",
        "with x as (select 'a.b' as n) select pg_catalog.set_config(n, 'c', true) from x",
    ],
)
def test_a_setting_that_a_query_computes_is_refused_with_a_way_to_dump(sql: str) -> None:
    with pytest.raises(SqlError) as refused:
        session_calls(statement_of(sql))
    assert refused.value.sqlstate == "0A000"
    assert "`triplicate database export`" in str(refused.value.hint)


@pytest.mark.parametrize("sql", ["select current_setting('a') from t", "select set_config from t", "select 'set_config(' from t"])
def test_other_queries_are_not_for_the_session(sql: str) -> None:
    assert session_calls(statement_of(sql)) is None


def test_a_select_of_calls_is_answered_by_the_session() -> None:
    found = session_calls(statement_of("select pg_catalog.set_config('search_path', '', false), current_setting('x') as y"))
    assert found is not None
    assert found.columns == ["set_config", "y"]
