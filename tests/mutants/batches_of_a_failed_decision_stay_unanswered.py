"""A group whose decision fails with the copy is forgotten, with the batches that it has taken from the queue."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.core.key_expiry import next_time_ms
from triplicate.kv.core.store_records import StoreEntryHeader
from triplicate.kv.engine.store_leadership import StoreLeadership, _Group

TESTS = ["tests/unit/kv/engine/test_store_leadership.py::test_batches_of_a_group_whose_decision_fails_with_the_copy_are_answered"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def forgetful(self: StoreLeadership) -> _Group:
        state, time_ms = self._state, next_time_ms(self._state.time_ms, self.now_ms)
        group = _Group(StoreEntryHeader(state.identity, self.epoch, state.number + 1, time_ms, state.keys))
        self._fill(group, time_ms)
        return group

    patch(StoreLeadership, "_decide_group", forgetful)
