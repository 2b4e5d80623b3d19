"""The position of a store's snapshot is of an earlier moment than its keys, where a change comes in between."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.storage.rocks_copy import _STATE, Moment, RocksCopy
from triplicate.kv.storage.store_stand import decode_state

TESTS = ["tests/unit/kv/storage/test_rocks_copy.py::test_the_state_and_the_keys_for_a_snapshot_are_of_one_moment"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def moment(self: RocksCopy) -> Moment:
        snapshot = self._open.snapshot()
        return Moment(decode_state(snapshot[_STATE]), self._items(snapshot.iter()))

    patch(RocksCopy, "moment", moment)
