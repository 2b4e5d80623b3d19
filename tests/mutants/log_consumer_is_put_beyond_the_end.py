"""A consumer is put at an offset that the log has not reached, and passes over the records before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/test_consumers.py::test_a_position_beyond_the_end_is_refused_and_the_end_itself_is_not"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.readable_logs import ReadableLogs

    async def anywhere(self: ReadableLogs, name: str, position: Any) -> int:
        return await self.offset_at(name, position)

    patch(ReadableLogs, "_offset_within", anywhere)
