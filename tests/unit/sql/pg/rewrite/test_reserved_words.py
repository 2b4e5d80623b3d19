"""Names that only SQLite reserves."""

from __future__ import annotations

import pytest

from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.rewrite.reserved_words import quote_reserved

QUOTED = [
    ("CREATE TABLE t (index BIGINT, a INT)", 'CREATE TABLE t ("index" BIGINT, a INT)'),
    ("CREATE INDEX ix ON t (Index)", 'CREATE INDEX ix ON t ("index")'),
    ("CREATE UNIQUE INDEX ix ON t (index)", 'CREATE UNIQUE INDEX ix ON t ("index")'),
    ("SELECT t.index, 'index' FROM t WHERE index > 1 -- index", 'SELECT t."index", \'index\' FROM t WHERE "index" > 1 -- index'),
    ("INSERT INTO t (index, transaction) VALUES (1, 2)", 'INSERT INTO t ("index", "transaction") VALUES (1, 2)'),
    ("ALTER TABLE t DROP COLUMN index", 'ALTER TABLE t DROP COLUMN "index"'),
]
KEPT = [
    "DROP INDEX ix",
    "CREATE INDEX ix ON t (a)",
    "ALTER TABLE t ADD COLUMN a INT",
    "ALTER TABLE t DROP COLUMN a",
    "BEGIN TRANSACTION",
    'SELECT "index" FROM t',
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t; END",
    "SELECT indexes FROM t",
]


@pytest.mark.parametrize(("sql", "quoted"), QUOTED)
def test_a_name_that_only_sqlite_reserves_is_quoted(sql: str, quoted: str) -> None:
    assert quote_reserved(statement_of(sql)).sql == quoted


@pytest.mark.parametrize("sql", KEPT)
def test_keywords_stay(sql: str) -> None:
    assert quote_reserved(statement_of(sql)).sql == sql
