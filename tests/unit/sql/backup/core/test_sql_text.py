"""The parts of a database as SQL text."""

from __future__ import annotations

import pytest

from triplicate.sql.backup.core.sql_text import begins_sqlite_dump, definition_for_psql, inserts, is_cut_off


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        ("CREATE TABLE t(a, 'b' text) -- the end", "CREATE TABLE t(a, 'b' text)"),
        ("CREATE TABLE t(a /* plain */, b -- plain\n)", "CREATE TABLE t(a /* plain */, b -- plain\n)"),
        ("CREATE TABLE t(a /* it's */, b -- \"\n)", "CREATE TABLE t(a , b )"),
        ("CREATE TABLE t(a /* /* */, b)", "CREATE TABLE t(a , b)"),
        ('CREATE TABLE [a"b](`c``d` int, "e;f" text default \'g;h\')', 'CREATE TABLE "a""b"("c`d" int, "e;f" text default \'g;h\')'),
        ("CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT ';'; END", "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT ';'\\; END"),
    ],
)
def test_psql_reads_a_definition_as_sqlite_does(definition: str, shown: str) -> None:
    assert definition_for_psql(definition) == shown


def test_a_whole_number_stays_a_fraction_where_its_column_would_not_make_it_one() -> None:
    (text,) = inserts("t", ("a", "b", "c"), ("", "double precision", "real"), [(3.0, 3.0, None), (0.5, 1, 1e300)])
    assert text.endswith("VALUES\n(CAST(3.0 AS double precision), 3.0, NULL),\n(0.5, 1, 1e+300);\n")


def test_a_text_is_known_by_its_first_and_last_line() -> None:
    whole = b"-- triplicate: x\nCREATE TABLE t(a);\n-- triplicate: end of x\n"
    assert not is_cut_off(whole, whole)
    assert is_cut_off(whole[:-1], whole[:-1])
    assert is_cut_off(whole[:30], whole[:30])
    assert is_cut_off(whole, whole.replace(b"end of x", b"end of y"))
    assert not is_cut_off(b"CREATE TABLE t(a);", b"CREATE TABLE t(a);")
    assert begins_sqlite_dump(b"pragma foreign_keys=off;\r\nBegin Transaction;")
    for text in (b"", b"CREATE TABLE t(a);", b"BEGIN TRANSACTION;\nCREATE TABLE t(a);", whole):
        assert not begins_sqlite_dump(text)
