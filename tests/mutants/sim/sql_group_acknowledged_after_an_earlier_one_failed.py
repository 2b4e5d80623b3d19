"""When a window fails, its later groups are answered as stored, although an earlier one has failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

KIND = "databases"
CHECKERS = ("transactions_happen_once",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime import resolve
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.statement_batches import PendingBatch

    append, fail_statements = Leadership._append_group, Leadership._fail_statements

    async def noted(self: Leadership, window: Any, group: Any) -> None:
        vars(self)["_sent_groups"] = window.groups
        await append(self, window, group)

    def answer_later(self: Leadership, statements: Sequence[Any], pending: PendingBatch | None) -> None:
        if pending is not None and any(group.pending is pending for group in vars(self).get("_sent_groups", ())[1:]):
            for statement, answer in zip(statements, pending.answers, strict=True):
                if answer.outcome is not None:
                    resolve(statement.answer, answer.outcome)
        fail_statements(self, statements, pending)

    patch(Leadership, "_append_group", noted)
    patch(Leadership, "_fail_statements", answer_later)
