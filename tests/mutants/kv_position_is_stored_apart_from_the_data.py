"""A copy of a store writes its data first and its position afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.kv.storage import rocks_copy
from triplicate.kv.storage.rocks_copy import AppliedBatch, RocksCopy
from triplicate.kv.storage.store_stand import StoreStand

TESTS = ["tests/unit/kv/storage/test_rocks_copy.py::test_a_crash_at_any_write_leaves_data_and_position_of_one_moment"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = RocksCopy.write

    def write(self: RocksCopy, batches: Sequence[AppliedBatch], state: StoreStand) -> None:
        if batches:
            original(self, batches, self.state)
        original(self, (), state)

    patch(rocks_copy.RocksCopy, "write", write)
