"""The comment with the types of a view's columns. The texts of version 1 are in databases and must be read for ever."""

from __future__ import annotations

import pytest

from triplicate.sql.core.view_columns import has_types, shown_type, split_computed, types_comment, view_columns

COLUMNS = [("id", "bigint"), ("due", ""), ("total", ""), ("x", "")]
STORED = (
    'CREATE VIEW v("id", "due", "total", "x") AS /* types 1 | - | date | numeric(1000,2) | ? */ '
    "select id, triplicate_date_add(d, 1, +1) as due, triplicate_numeric_sum(n) as total, json_extract(j, '$.x') as x from t"
)


def test_a_text_of_version_1_is_read() -> None:
    assert view_columns(STORED, COLUMNS) == [
        ("id", "bigint"),
        ("due", "date COMPUTED"),
        ("total", "numeric(1000,2) COMPUTED"),
        ("x", " COMPUTED"),
    ]
    assert [shown_type(declared) for _, declared in view_columns(STORED, COLUMNS)] == ["bigint", "date", "numeric", ""]
    for head in ('create view if not exists "a ""b"" ("', "CREATE VIEW größe"):
        assert has_types(STORED.replace("CREATE VIEW v", head).replace('"x")', '"x ""("  )\n'))
    assert types_comment(["-", "date", "numeric(1000,2)", "?"]) in STORED


@pytest.mark.parametrize(
    "types",
    ["timestamp with time zone", "character varying(20)", "double precision", "numeric(12,2)", "jsonb", "numeric(1000,0)"],
)
def test_every_type_comes_back(types: str) -> None:
    sql = f"CREATE VIEW v(a) AS {types_comment([types])} select 1"
    assert has_types(sql)
    assert [split_computed(declared) for _, declared in view_columns(sql, [("a", "")])] == [(types, True)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW v AS select a, b from t",
        'CREATE VIEW v("a", "b") AS /* types 2 | date | date */ select a, b from t',
        'CREATE VIEW v("a", "b") AS /* types 1 | date */ select a, b from t',
        "CREATE VIEW v AS select a, b from t /* types 1 | date | date */",
        "CREATE VIEW v(a, b) AS select 'x AS /* types 1 | date | date */' as a, b from t",
        "CREATE VIEW v(a, b) AS select a, b from (select 1 AS /* types 1 | date | date */ a, 2 as b)",
    ],
)
def test_what_is_no_such_comment_leaves_the_types_of_sqlite(sql: str) -> None:
    columns = [("a", "int"), ("b", "")]
    assert view_columns(sql, columns) == columns
    assert split_computed("int") == ("int", False)
