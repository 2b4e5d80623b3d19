"""A repair of a log judges by the operator's clock whether the time of a ledger in the trash is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/upkeep/test_repair.py::test_the_end_of_the_trash_is_judged_by_the_stores_clock"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.head_store import HeadStore

    async def local(self: Any) -> int:
        return int(self.host.clock.wall_us() // 1000)

    patch(HeadStore, "now_ms", local)
