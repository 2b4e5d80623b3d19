"""All keys are counted by the number of one moment and the deadlines of another."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.storage.rocks_copy import RocksCopy

TESTS = ["tests/unit/kv/storage/test_rocks_copy.py::test_keys_that_expire_while_all_are_counted_do_not_count"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def count_all(self: RocksCopy) -> int:
        state = self.state
        return state.keys - len(self.due(state.time_ms, state.keys))

    patch(RocksCopy, "count_all", count_all)
