"""A change that the hook failed to capture is kept, and nobody is told."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.writer import Writer

TESTS = ["tests/unit/sql/test_rowlog.py::test_a_hook_that_fails_poisons_the_statement"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def look_away(self: Writer) -> None:
        return

    patch(Writer, "_refuse_poisoned", look_away)
