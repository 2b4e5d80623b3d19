"""The columns of unnest() in a subquery of the catalogue are renamed in the whole query, and an alias alone names no column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.pg.rewrite import set_functions
from triplicate.sql.pg.rewrite.mutable_token import MutableToken

TESTS = ["tests/unit/sql/pg/rewrite/test_catalogue_queries.py::test_a_query_of_the_catalogue_finds_what_there_is"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def renamed(parts: Sequence[MutableToken], alias: MutableToken, columns: dict[str, str]) -> list[MutableToken]:
        return [MutableToken("word", columns.get(part.text.strip('"').lower(), part.text)) for part in parts]

    patch(set_functions, "_renamed", renamed)
