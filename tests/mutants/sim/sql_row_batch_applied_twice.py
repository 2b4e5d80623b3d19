"""A follower that resumes reads the last record again, and applies it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import LogReader, Logs
    from triplicate.sql.storage.applier import Applier

    original = Logs.reader

    async def reader(self: Logs, name: str, start_offset: int = 0, *, include_control: bool = False) -> LogReader:
        return await original(self, name, max(0, start_offset - 1), include_control=include_control)

    def never(self: Applier, batch: Any) -> bool:
        return False

    patch(Logs, "reader", reader)
    patch(Applier, "_is_applied", never)
