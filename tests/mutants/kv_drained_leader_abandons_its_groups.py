"""A leader of a store that gives way to another node does not wait for the changes that are at the log."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.engine.store_leadership import StoreLeadership

TESTS = [
    "tests/unit/kv/engine/test_store_leadership.py::test_a_drain_waits_for_the_groups_at_the_log_and_sends_no_other",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def drain(self: StoreLeadership, limit_s: float) -> bool:
        return True

    patch(StoreLeadership, "drain", drain)
