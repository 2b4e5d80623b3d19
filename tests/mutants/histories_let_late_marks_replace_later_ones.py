"""The histories write the marks of a store without a condition: one of unknown outcome may replace a later one, and a right store is blamed."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.histories.level_doors import KEYS, StoreDoor

TESTS = ["tests/unit/benchmarks/histories/test_level_doors.py::test_a_mark_that_comes_late_replaces_no_later_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def write(self: StoreDoor, mark: int) -> int:
        await self._ask("MSET", *(word for key in KEYS for word in (key, mark)))
        return int(await self._ask("TRIPLICATE.POSITION"))

    patch(StoreDoor, "write", write)
