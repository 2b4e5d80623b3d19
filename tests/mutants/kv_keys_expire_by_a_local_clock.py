"""Each copy of a store hides keys by its own clock, so that equal copies show different keys."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv import Record, ReplicatedStore
from triplicate.kv.core.key_expiry import is_expired

TESTS = ["tests/unit/kv/engine/test_replicated_store.py::test_a_followers_own_clock_hides_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def shown(self: ReplicatedStore, record: Record | None) -> Record | None:
        return None if record is None or is_expired(record.deadline_ms, self._host.clock.wall_us() // 1000) else record

    patch(ReplicatedStore, "_shown", shown)
