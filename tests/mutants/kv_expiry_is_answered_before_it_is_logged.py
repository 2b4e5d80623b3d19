"""A leader answers that a key is expired by its clock, and a later leader with a slower clock shows the key again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.kv.engine.store_leadership import StoreLeadership

TESTS = ["tests/unit/kv/engine/test_replicated_store.py::test_keys_expire_by_the_leaders_clock_and_stay_expired_at_a_slower_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def not_logged(self: StoreLeadership, keys: Sequence[bytes]) -> None:
        return

    patch(StoreLeadership, "expire", not_logged)
