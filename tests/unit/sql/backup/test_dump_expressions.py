"""Expressions of PostgreSQL's catalogue without casts that say nothing."""

from __future__ import annotations

import pytest

from triplicate.sql.backup.dump_expressions import is_text_type, without_plain_casts
from triplicate.sql.core.lexer import statement_of


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("((status)::text = ANY ((ARRAY['new'::character varying, 'old'::character varying])::text[]))",
         "(status = ANY (ARRAY['new', 'old']))"),
        ("(kind = ANY (ARRAY['a'::text, 'b'::text]))", "(kind = ANY (ARRAY['a', 'b']))"),
        ("((name)::text !~~ ' %'::text)", "(name !~~ ' %')"),
        ("DEFAULT 'new'::character varying", "DEFAULT 'new'"),
        ("(now() AT TIME ZONE 'utc'::text)", "(now() AT TIME ZONE 'utc')"),
        ("((number)::text = '1'::text)", "((number)::text = '1')"),
        ("'abc'::character varying(2)", "'abc'::character varying(2)"),
        ("'2024-01-01'::date", "'2024-01-01'::date"),
        ("(0)::numeric", "(0)::numeric"),
        ("((ARRAY[1, 2])::bigint[])", "((ARRAY[1, 2])::bigint[])"),
        ("lower(((a || b))::text)", "lower(((a || b))::text)"),
        ("'it''s ::text'::text", "'it''s ::text'"),
    ],
)  # fmt: skip
def test_casts_of_texts_to_text_are_removed_and_no_others(text: str, plain: str) -> None:
    assert without_plain_casts(statement_of(text), {"status", "name"}).sql == plain


@pytest.mark.parametrize("declared", ["text", "character varying(80)", "character(3)", "VARCHAR"])
def test_texts_are_known_by_their_types(declared: str) -> None:
    assert is_text_type(declared)
    assert not is_text_type("integer")
