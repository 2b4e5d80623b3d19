"""The event loop reads views and triggers of any length to compute the size of a statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.core.expansion import SchemaSizes
from triplicate.sql.core.lexer import Token

TESTS = ["tests/unit/sql/executor/test_loop_reader.py::test_long_views_are_read_on_a_thread"]

_size = SchemaSizes.size


def _without_limit(self: SchemaSizes, tokens: Sequence[Token], characters_max: int | None = None) -> int:
    return _size(self, tokens)


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(SchemaSizes, "size", _without_limit)
