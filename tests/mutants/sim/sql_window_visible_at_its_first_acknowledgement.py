"""The first acknowledgement of a window makes all its groups visible to reads, also those that are not acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership

    append = Leadership._append_group

    async def commit_all(self: Leadership, window: Any, group: Any) -> None:
        await append(self, window, group)
        if not window.may_be_committed and self._transaction.is_small:
            self._thread.call(self.writer._connection.execute, "commit; begin immediate")

    patch(Leadership, "_append_group", commit_all)
