"""COPY's statement: both forms of its options, and PostgreSQL's SQLSTATEs for those that it refuses."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.syntax.copy_statement import CopyAction, CopyFormat, CopyHeader, CopyOptions, CopyStatement, parse_copy

CSV = CopyOptions(CopyFormat.CSV, ",", "")


def parsed(sql: str) -> CopyStatement:
    return parse_copy(statement_of(sql))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("COPY t FROM STDIN", CopyStatement(True, "t", '"t"', None, "")),
        ('copy public."T" (A, "B b") from stdin;', CopyStatement(True, "T", '"public"."T"', ("a", "B b"), "")),
        ("COPY (SELECT f(1), ')') TO STDOUT", CopyStatement(False, "", "", None, "SELECT f(1), ')'")),
        ("COPY t TO STDOUT WITH (FORMAT csv)", CopyStatement(False, "t", '"t"', None, "", CSV)),
        ("COPY t TO STDOUT CSV", CopyStatement(False, "t", '"t"', None, "", CSV)),
        ("COPY BINARY t FROM STDIN", CopyStatement(True, "t", '"t"', None, "", CopyOptions(CopyFormat.BINARY))),
        ("COPY t FROM STDIN (ACTION Upsert)", CopyStatement(True, "t", '"t"', None, "", CopyOptions(action=CopyAction.UPSERT))),
        ("COPY t FROM STDIN (ACTION 'delete')", CopyStatement(True, "t", '"t"', None, "", CopyOptions(action=CopyAction.DELETE))),
        ("COPY binary FROM STDIN", CopyStatement(True, "binary", '"binary"', None, "")),
    ],
)
def test_what_is_copied(sql: str, expected: CopyStatement) -> None:
    assert parsed(sql) == expected


def test_both_forms_of_the_options_mean_the_same() -> None:
    new = parsed(
        """COPY t FROM STDIN WITH (FORMAT csv, DELIMITER E'\\t', NULL 'nil', HEADER true, QUOTE '''', ESCAPE '!', FORCE_NOT_NULL (a, "B"),
        FORCE_NULL (c), ENCODING 'UTF-8', FREEZE)"""
    )
    old = parsed(
        """COPY t FROM STDIN DELIMITERS E'\\t' WITH CSV NULL AS 'nil' HEADER QUOTE AS '''' ESCAPE '!' FORCE NOT NULL a, "B" FORCE NULL c
        ENCODING 'utf8' FREEZE"""
    )
    options = CopyOptions(CopyFormat.CSV, "\t", "nil", CopyHeader.LINE, "'", "!", (), ("a", "B"), ("c",))
    assert new.options == old.options == options
    assert parsed("COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE *)").options.force_quote is None
    assert parsed("COPY t TO STDOUT CSV FORCE QUOTE a, b").options.force_quote == ("a", "b")
    assert parsed("COPY t FROM STDIN (HEADER match)").options.header is CopyHeader.MATCH
    assert parsed("COPY t FROM STDIN (FORMAT csv, QUOTE '^')").options.escape == "^"


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("COPY t", "42601"),
        ("COPY t FROM", "42601"),
        ("COPY t FROM STDIN nonsense", "42601"),
        ("COPY (SELECT 1 TO STDOUT", "42601"),
        ("COPY (SELECT 1) FROM STDIN", "42601"),
        ("COPY t TO STDOUT WHERE a > 1", "42601"),
        ("COPY t FROM STDIN WHERE a > 1", "0A000"),
        ("COPY t FROM '/tmp/x'", "0A000"),
        ("COPY t TO PROGRAM 'cat'", "0A000"),
        ("COPY t FROM STDIN (FORMAT xml)", "22023"),
        ("COPY t FROM STDIN (COLOUR red)", "42601"),
        ("COPY t FROM STDIN (ACTION merge)", "22023"),
        ("COPY t FROM STDIN (ACTION)", "42601"),
        ("COPY t TO STDOUT (ACTION insert)", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, FORMAT text)", "42601"),
        ("COPY t FROM STDIN CSV CSV", "42601"),
        ("COPY t FROM STDIN (DELIMITER)", "42601"),
        ("COPY t FROM STDIN (DELIMITER 'ab')", "0A000"),
        ("COPY t FROM STDIN (DELIMITER 'é')", "0A000"),
        ("COPY t FROM STDIN (DELIMITER '')", "0A000"),
        ("COPY t FROM STDIN (DELIMITER E'\\n')", "22023"),
        ("COPY t FROM STDIN (DELIMITER 'x')", "22023"),
        ("COPY t FROM STDIN (DELIMITER '\\')", "22023"),
        ("COPY t FROM STDIN (NULL E'a\\nb')", "22023"),
        ("COPY t FROM STDIN (DELIMITER ',', NULL 'a,b')", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, DELIMITER '\"')", "22023"),
        ("COPY t FROM STDIN (FORMAT csv, NULL '\"')", "0A000"),
        ("COPY t FROM STDIN (QUOTE '\"')", "0A000"),
        ("COPY t FROM STDIN (ESCAPE '\"')", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, QUOTE 'ab')", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, ESCAPE '')", "0A000"),
        ("COPY t FROM STDIN (FORCE_NULL (a))", "0A000"),
        ("COPY t TO STDOUT (FORMAT csv, FORCE_NULL (a))", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE (a))", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, FORCE_NULL a)", "22023"),
        ("COPY t FROM STDIN (FORMAT binary, DELIMITER ',')", "42601"),
        ("COPY t FROM STDIN (FORMAT binary, NULL '')", "42601"),
        ("COPY t FROM STDIN (FORMAT binary, HEADER)", "0A000"),
        ("COPY t FROM STDIN (HEADER perhaps)", "42601"),
        ("COPY t TO STDOUT (HEADER match)", "0A000"),
        ("COPY t TO STDOUT (FREEZE)", "0A000"),
        ("COPY t FROM STDIN (ENCODING 'LATIN1')", "0A000"),
    ],
)
def test_what_is_refused(sql: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as refused:
        parsed(sql)
    assert refused.value.sqlstate == sqlstate
