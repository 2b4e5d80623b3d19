"""Two first producers of a writer make the node of its log's producers at the same time: the slower one empties it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_a_producer_that_opens_slowly_does_not_make_the_log_forget_another"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.producer_node import create_node
    from triplicate.log.writing.segment_transitions import SegmentTransitions

    async def keep_producers(self: Any, epoch: int, owner: Any) -> None:
        if not self._has_producers:
            await create_node(self._store, self.name, self.log_id, epoch, owner)
            self._has_producers = True

    patch(SegmentTransitions, "keep_producers", keep_producers)
