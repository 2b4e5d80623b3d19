"""A change that the hook failed to capture is kept without an error."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = ["tests/unit/sql/executor/test_writer_connection.py::test_a_hook_that_fails_poisons_the_statement"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def forget(self: ChangeCapture, reason: object) -> None:
        return

    patch(ChangeCapture, "_spoil", forget)
