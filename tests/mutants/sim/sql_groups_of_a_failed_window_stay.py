"""A window that fails is not undone: the rows of its later groups stay in the leader's copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

KIND = "databases"
CHECKERS = ("copies_are_equal",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership

    append, fail_statements = Leadership._append_further, Leadership._fail_statements

    async def noted(self: Leadership, window: Any, group: Any) -> None:
        vars(self)["_sent_groups"] = window.groups
        await append(self, window, group)

    def keep(self: Leadership, statements: Sequence[Any], pending: Any) -> None:
        sent = vars(self).pop("_sent_groups", ())
        if any(group.pending is pending for group in sent) and self.writer._connection.in_transaction:
            self.writer._connection.execute("commit")
        fail_statements(self, statements, pending)

    patch(Leadership, "_append_further", noted)
    patch(Leadership, "_fail_statements", keep)
