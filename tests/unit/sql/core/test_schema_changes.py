"""The change read out of a statement's text, compared with the change that SQLite makes."""

from __future__ import annotations

import random

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import FormatError
from triplicate.sql import (
    ColumnAdded,
    ColumnDropped,
    ColumnRenamed,
    TableChange,
    TableCreated,
    TableDropped,
    TableRenamed,
    fold,
    table_change,
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE IF NOT EXISTS t(a)", TableCreated("t")),
        ("create /* new */ table main.'odd ''name'(a)", TableCreated("odd 'name")),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", TableCreated("f", virtual=True)),
        ("drop table if exists `t`", TableDropped("t")),
        ('ALTER TABLE [t t] RENAME TO "x""y"', TableRenamed("t t", 'x"y')),
        ("alter table t rename a to b", ColumnRenamed("t", "a", "b")),
        ("alter table t rename column a to 'b c'", ColumnRenamed("t", "a", "b c")),
        ("alter table t drop a", ColumnDropped("t", "a")),
        ("alter table main.t drop column [a b]", ColumnDropped("t", "a b")),
        ("alter table t add c text collate nocase not null default 7 check (c <> 'x')", ColumnAdded("t", "c", "7")),
        ("alter table t add column c numeric(10, 2) default(-(3))", ColumnAdded("t", "c", -3)),
        ("alter table t add c default x'00ff'", ColumnAdded("t", "c", b"\x00\xff")),
        ("alter table t add c boolean default true", ColumnAdded("t", "c", 1)),
        ("alter table t add c text default current_timestamp", ColumnAdded("t", "c")),
        ("alter table t add c references o(x) on delete set default", ColumnAdded("t", "c")),
        ("alter table t add c check (c in (1, 2)) default + 2", ColumnAdded("t", "c", 2)),
        ("alter table t add c int generated always as (a + 1) virtual", ColumnAdded("t", "c")),
        ("alter table t add constraint k check (a > 0)", None),
        ("alter table t drop constraint k", None),
        ("alter table t alter column a set not null", None),
        ("create index i on t(a)", None),
        ("create unique index i on t(a)", None),
        ("create view v as select 1", None),
        ("create trigger g after insert on t begin drop table x; end", None),
        ("drop index i", None),
        ("drop view v", None),
        ("analyze", None),
        ("", None),
        ("alter table t add c real default 1e-3", ColumnAdded("t", "c", 0.001)),
        ("alter table t add c real not null default -1.5E+2 check (c < 1)", ColumnAdded("t", "c", -150.0)),
        ("alter table t add c real default .5", ColumnAdded("t", "c", 0.5)),
        ("alter table t add c real default - .5e-1 collate nocase", ColumnAdded("t", "c", -0.05)),
        ("alter table t add \u00a0y text default 'z'", ColumnAdded("t", "\u00a0y", "z")),
        ("create table \u3000b(x)", TableCreated("\u3000b")),
        ("\ufeffdrop table t\x85", TableDropped("t\x85")),
        ("create table virtual(a)", TableCreated("virtual")),
        ("alter table t add c generated default '007'", ColumnAdded("t", "c", 7)),
    ],
)
def test_texts_are_read_as_sqlite_reads_them(sql: str, expected: TableChange | None) -> None:
    assert table_change(sql) == expected


@pytest.mark.parametrize("sql", ["alter table t frobnicate x", "alter table t rename", "drop table"])
def test_a_text_that_is_not_known_is_refused(sql: str) -> None:
    with pytest.raises(FormatError, match="the log holds a schema change"):
        table_change(sql)


def test_names_are_compared_as_sqlite_compares_them() -> None:
    assert fold("Straße ÄB") == "straße Äb"


NAMES = ("a", "B", '"c d"', "[e]", "`f`", "'g'", '"h""i"', "é", "j\u00a0k", "virtual", "\u2003m")
TYPES = ("", "int", "text", "varchar(10)", "double precision", "blob", "numeric( 10 , 2 )", '"odd"')
CONSTRAINTS = ("", "not null", "collate nocase", "check (1 > 0)", "constraint n not null")
DEFAULTS = (
    "7",
    "-7",
    "'x'",
    "''''",
    "x'61'",
    "(5)",
    "('(')",
    "- 1.5",
    "true",
    "null",
    '"dq"',
    "bare",
    "1e3",
    "(-(2))",
    "(cast('9' as integer))",
    "1e-3",
    "-2.5E+1",
    ".5",
    "- .5",
    "x'00'",
    "current_date",
)


def columns(connection: apsw.Connection) -> list[str]:
    return [str(name) for (name,) in connection.execute("select name from pragma_table_info('t')")]


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_columns_and_values_are_those_that_sqlite_has_then(seed: int) -> None:
    chance = random.Random(seed)
    connection = apsw.Connection(":memory:")
    connection.execute("create table t(id, z); insert into t values(1, 2)")
    for _ in range(6):
        before = columns(connection)
        name, old = chance.choice(NAMES), '"' + chance.choice(before).replace('"', '""') + '"'
        parts = [chance.choice(TYPES), chance.choice(CONSTRAINTS), f"default {chance.choice(DEFAULTS)}", chance.choice(CONSTRAINTS)]
        word = chance.choice(("", "column ", "/* - */ COLUMN\n"))
        sql = chance.choice(
            (
                f"alter table t add {word}{name} {' '.join(parts)}",
                f"alter table t rename {word}{old} to {name}",
                f"alter table t drop {word}{old}",
            )
        )
        try:
            connection.execute(sql)
        except apsw.SQLError:
            continue
        after, change = columns(connection), table_change(sql)
        added, gone = [one for one in after if one not in before], [one for one in before if one not in after]
        match change:
            case ColumnAdded(column=column, default=default):
                assert ([column], []) == (added, gone)
                (value,) = connection.execute(f'select "{column.replace(chr(34), chr(34) * 2)}" from t').fetchall()[0]
                assert (type(value), value) == (type(default), default), sql
            case ColumnRenamed(column=column, new_name=new_name):
                assert after == [new_name if fold(one) == fold(column) else one for one in before]
            case ColumnDropped(column=column):
                assert ([], [column]) == (added, gone)
            case _:
                raise AssertionError(f"{sql}: {change}")
    connection.close()
