"""The rows of INSERT as pg_dump writes them."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.backup.dump_inserts import DEFAULT, Field, insert_rows, parse_insert


def read(text: str) -> tuple[str, str, tuple[str, ...] | None, list[list[Field]]]:
    head = parse_insert(text)
    return head.schema, head.table, head.columns, [row.fields for row in insert_rows(text, head.end)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO public.t VALUES (1, -2.50, 'a''b', NULL, true, false)",
         ("public", "t", None, [["1", "-2.50", "a'b", None, "t", "f"]])),
        ('INSERT INTO public."T ""x"" VALUES" (a, "B,)") VALUES\n\t(1e-05, DEFAULT),\n\t(.5, \'NaN\')',
         ("public", 'T "x" VALUES', ("a", "B,)"), [["1e-05", DEFAULT], [".5", "NaN"]])),
        ("insert into T overriding system value values (E'a\\n\\'\\\\', '\\x00;\n)') on conflict do nothing",
         ("", "t", None, [["a\n'\\", "\\x00;\n)"]])),
        ("INSERT INTO other.t VALUES ('')", ("other", "t", None, [[""]])),
    ],
)  # fmt: skip
def test_constants_become_the_fields_of_copy(text: str, expected: object) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t VALUES (now())",
        "INSERT INTO t VALUES (1 + 1)",
        "INSERT INTO t VALUES ('a' 'b')",
        "INSERT INTO t VALUES (1), 2",
        "INSERT INTO t VALUES (1) RETURNING a",
        "INSERT INTO t VALUES (1),",
        "INSERT INTO t VALUES ()",
        "INSERT INTO t VALUES ('a",
        "INSERT INTO t VALUES (nullify)",
        "INSERT INTO t AS x VALUES (1)",
    ],
)
def test_an_insert_that_is_none_of_constants_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="none of pg_dump's"):
        read(text)


def test_a_refused_value_has_its_position() -> None:
    text = "INSERT INTO t VALUES\n(1),\n(now())"
    with pytest.raises(SqlError) as error:
        read(text)
    assert error.value.position == text.index("now()") + 1


def test_a_long_constant_is_read_in_one_go() -> None:
    text = "INSERT INTO t VALUES ('" + "''\\" * 300_000 + "', E'" + "ab\\n" * 1000 + "', '" + "f" * 10_000_000 + "')"
    assert read(text)[3] == [["'\\" * 300_000, "ab\n" * 1000, "f" * 10_000_000]]
