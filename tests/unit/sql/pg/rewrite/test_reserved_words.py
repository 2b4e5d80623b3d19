"""Names that only SQLite reserves."""

from __future__ import annotations

import pytest

from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.rewrite.reserved_words import constraints_last, quote_reserved

QUOTED = [
    ("CREATE TABLE t (index BIGINT, a INT)", 'CREATE TABLE t ("index" BIGINT, a INT)'),
    ("CREATE INDEX ix ON t (Index)", 'CREATE INDEX ix ON t ("index")'),
    ("CREATE UNIQUE INDEX ix ON t (index)", 'CREATE UNIQUE INDEX ix ON t ("index")'),
    ("SELECT t.index, 'index' FROM t WHERE index > 1 -- index", 'SELECT t."index", \'index\' FROM t WHERE "index" > 1 -- index'),
    ("INSERT INTO t (index, transaction) VALUES (1, 2)", 'INSERT INTO t ("index", "transaction") VALUES (1, 2)'),
    ("ALTER TABLE t DROP COLUMN index", 'ALTER TABLE t DROP COLUMN "index"'),
    ("SELECT a AS from, b AS Order FROM t", 'SELECT a AS "from", b AS "order" FROM t'),
    ("SELECT a AS values FROM t UNION SELECT a AS select", 'SELECT a AS "values" FROM t UNION SELECT a AS "select"'),
    ("SELECT (SELECT a AS group) AS where LIMIT 1", 'SELECT (SELECT a AS "group") AS "where" LIMIT 1'),
    ("SELECT CAST(a AS INT) AS default FROM t", 'SELECT CAST(a AS INT) AS "default" FROM t'),
    ("SELECT t.order, t.values, t.set FROM t", 'SELECT t."order", t."values", t."set" FROM t'),
    (
        "SELECT values, set, exists FROM t WHERE set > 1 AND NOT exists",
        'SELECT "values", "set", "exists" FROM t WHERE "set" > 1 AND NOT "exists"',
    ),
    ("INSERT INTO t (values, set, exists) VALUES (1, 2, 3)", 'INSERT INTO t ("values", "set", "exists") VALUES (1, 2, 3)'),
    ("UPDATE t SET values = 1, set = 2, exists = set", 'UPDATE t SET "values" = 1, "set" = 2, "exists" = "set"'),
    ("CREATE TABLE t (values int, set int, exists int)", 'CREATE TABLE t ("values" int, "set" int, "exists" int)'),
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
    "INSERT INTO t DEFAULT VALUES",
    "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = excluded.a WHERE EXISTS (SELECT 1) AND NOT EXISTS (VALUES (1))",
    "CREATE TABLE IF NOT EXISTS t (a int REFERENCES u ON DELETE SET NULL ON UPDATE SET DEFAULT)",
    "CREATE TABLE t AS VALUES (1)",
    "CREATE VIEW v AS SELECT a FROM t",
    "WITH x AS (SELECT 1), y AS NOT MATERIALIZED (SELECT 2) SELECT CAST(1 AS numeric), pg_catalog.left('a', 1)",
    "SELECT a AS x, sum(b) OVER w FROM t WINDOW w AS (ORDER BY a)",
    "UPDATE t AS x SET a = 1 FROM u WHERE u.b = x.a",
]


@pytest.mark.parametrize(("sql", "quoted"), QUOTED)
def test_a_name_that_only_sqlite_reserves_is_quoted(sql: str, quoted: str) -> None:
    assert quote_reserved(statement_of(sql)).sql == quoted


@pytest.mark.parametrize("sql", KEPT)
def test_keywords_stay(sql: str) -> None:
    assert quote_reserved(statement_of(sql)).sql == sql


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        (
            "create table u (primary key (a), a int default (1 + 2), check (a > 0), constraint k unique (b), b int) strict",
            "create table u (a int default (1 + 2), b int, primary key (a), check (a > 0), constraint k unique (b)) strict",
        ),
        (
            "create table if not exists s.u (foreign key (a) references t (b), a int)",
            "create table if not exists s.u (a int, foreign key (a) references t (b))",
        ),
        ("create table u (a int, primary key (a))", None),
        ("create table u (a int check (a > 0), b int unique)", None),
        ("create table u as select 1", None),
        ("create table u ()", None),
        ("create table u (primary key (a), , a int)", None),
        ("select 1", None),
    ],
)
def test_table_constraints_come_behind_the_columns(sql: str, ordered: str | None) -> None:
    assert constraints_last(statement_of(sql)).sql == (ordered or sql)
