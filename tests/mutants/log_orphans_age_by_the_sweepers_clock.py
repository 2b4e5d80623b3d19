"""The age of an orphan is measured by the sweeper's wall clock instead of the metadata store's."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.store.head_store import HeadStore

TESTS = ["tests/unit/log/upkeep/test_orphans.py::test_the_age_of_an_orphan_is_the_stores_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def now_ms(store: HeadStore) -> int:
        return store.host.clock.wall_us() // 1000

    patch(HeadStore, "now_ms", now_ms)
