"""All groups of a window are answered as stored when the first of them is acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "databases"
CHECKERS = ("transactions_happen_once",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime import resolve
    from triplicate.sql.engine.leadership import Leadership

    append = Leadership._append_group

    async def answer_all(self: Leadership, window: Any, group: Any) -> None:
        await append(self, window, group)
        for sent in window.groups:
            for statement, answer in zip(sent.statements, sent.pending.answers, strict=True):
                if answer.outcome is not None:
                    resolve(statement.answer, answer.outcome)

    patch(Leadership, "_append_group", answer_all)
