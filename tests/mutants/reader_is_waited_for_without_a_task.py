"""A session that is served outside of a task cannot wait for a free reader."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import reader_pool

TESTS = ["tests/unit/sql/executor/test_reader_pool.py::test_a_session_that_is_served_outside_of_a_task_waits_for_a_reader"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def at_once() -> None:
        return

    patch(reader_pool, "own_task", at_once)
