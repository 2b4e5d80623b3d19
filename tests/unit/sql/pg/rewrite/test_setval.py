"""Django's statement for the next number, and others that look like it."""

from __future__ import annotations

import pytest

from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.rewrite.setval import number_above_maximum

DJANGO = """SELECT setval(pg_get_serial_sequence('"x_a"','id'), coalesce(max("id"), 1), max("id") IS NOT null) FROM "x_a";"""


def test_the_statement_of_django_asks_for_what_is_so() -> None:
    assert number_above_maximum(statement_of(DJANGO)).sql == 'SELECT coalesce(max("id"), 1) AS setval FROM "x_a"'


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT setval('x_a_id_seq', 1000)",
        DJANGO.replace('max("id") IS', 'max("n") IS'),
        DJANGO.replace("1)", "1000)"),
        DJANGO.replace('"x_a";', '"x_a" WHERE id > 5'),
        "SELECT 'setval'",
    ],
)
def test_another_setval_stays_as_it_is(sql: str) -> None:
    assert number_above_maximum(statement_of(sql)).sql == sql
