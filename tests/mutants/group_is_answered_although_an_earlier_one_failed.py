"""When the leadership is lost, groups that the log has acknowledged are answered as stored, although an earlier one has failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triplicate.runtime import resolve
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.executor.statement_batches import PendingBatch

TESTS = ["tests/unit/sql/engine/test_leadership_group_windows.py::test_a_group_is_not_answered_as_stored_when_another_of_its_window_fails"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    append, fail_statements = Leadership._append_group, Leadership._fail_statements
    acknowledged: set[int] = set()

    async def noted(self: Leadership, window: Any, group: Any) -> None:
        await append(self, window, group)
        acknowledged.add(id(group.pending))

    def answer_some(self: Leadership, statements: Sequence[Any], pending: PendingBatch | None) -> None:
        if pending is not None and id(pending) in acknowledged:
            for statement, answer in zip(statements, pending.answers, strict=True):
                resolve(statement.answer, answer)
        fail_statements(self, statements, pending)

    patch(Leadership, "_append_group", noted)
    patch(Leadership, "_fail_statements", answer_some)
