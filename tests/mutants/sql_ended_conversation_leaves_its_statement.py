"""A conversation ends without the statement that waits outside of a task."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import EagerWork

TESTS = [
    "tests/unit/sql/pg/protocol/test_conversation_chunks.py::test_a_statement_that_waits_without_a_task_has_ended_before_its_conversation"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(EagerWork, "move_to_task", lambda work: None)
