"""VACUUM asks for nothing but the ANALYZE in it."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.syntax.vacuum_statement import parse_vacuum


@pytest.mark.parametrize(
    ("sql", "analyze"),
    [
        ("VACUUM", ""),
        ("vacuum full verbose public.t, u;", ""),
        ("VACUUM (FULL, FREEZE off) t", ""),
        ("VACUUM (ANALYZE false) t", ""),
        ("vacuum analyze pgbench_branches", 'ANALYZE "pgbench_branches"'),
        ('VACUUM FREEZE VERBOSE ANALYZE public."T" (a, "b")', 'ANALYZE "T"'),
        ("VACUUM (VERBOSE, ANALYZE, PARALLEL 4)", "ANALYZE"),
        ("VACUUM INTO 'copy'", None),
    ],
)
def test_what_a_vacuum_asks_for(sql: str, analyze: str | None) -> None:
    assert parse_vacuum(statement_of(sql)) == analyze


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("VACUUM ANALYZE t, u", "0A000"),
        ("VACUUM (NONSENSE) t", "42601"),
        ("VACUUM t u", "42601"),
        ("VACUUM (FULL", "42601"),
        ("VACUUM t (", "42601"),
    ],
)
def test_mistakes(sql: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_vacuum(statement_of(sql))
    assert caught.value.sqlstate == sqlstate
