"""TRUNCATE's statement."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.syntax.truncate_statement import TruncatedTable, TruncateStatement, parse_truncate


@pytest.mark.parametrize(
    "sql",
    [
        "truncate t",
        "TRUNCATE TABLE ONLY t",
        "truncate table t * continue identity restrict;",
    ],
)
def test_one_table(sql: str) -> None:
    assert parse_truncate(statement_of(sql)) == TruncateStatement((TruncatedTable("t", '"t"'),))


def test_several_tables() -> None:
    found = parse_truncate(statement_of('truncate a, public."B c"'))
    assert found.tables == (TruncatedTable("a", '"a"'), TruncatedTable("B c", '"public"."B c"'))


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [("truncate", "42601"), ("truncate t u", "42601"), ("truncate t restart identity", "0A000"), ("truncate t cascade", "0A000")],
)
def test_what_is_refused(sql: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse_truncate(statement_of(sql))
    assert refused.value.sqlstate == sqlstate
