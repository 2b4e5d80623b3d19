"""Parameters are bound in the order of their appearance in the text, not by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.core.lexer import Token
from triplicate.sql.pg.syntax import token_cursor

TESTS = ["tests/property/test_translation.py::test_parameters_out_of_order_update_the_right_row"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def by_appearance(tokens: Sequence[Token]) -> dict[int, int]:
        places: dict[str, int] = {}
        return {index: places.setdefault(token.text, len(places) + 1) for index, token in enumerate(tokens) if token.kind == "parameter"}

    patch(token_cursor, "_parameter_numbers", by_appearance)
