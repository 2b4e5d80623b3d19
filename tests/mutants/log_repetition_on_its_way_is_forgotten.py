"""A writer remembers the last entries of a producer, durable or not: a repetition of one before them is acknowledged at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = [
    "tests/unit/log/core/test_producer_table.py::test_an_entry_on_its_way_is_remembered_behind_any_number_of_others",
    "tests/unit/log/writing/test_log_producer.py::test_a_repetition_waits_for_its_record_however_many_entries_are_on_their_way",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.producer_table import RECENT_BATCHES, ProducerTable

    accept = ProducerTable.accept

    def forgetful(self: Any, identity: bytes, epoch: int, sequence: int, now_us: int, waiter: Any) -> None:
        accept(self, identity, epoch, sequence, now_us, waiter)
        recent = self._known[identity].recent
        while len(recent) > RECENT_BATCHES:
            recent.popleft()

    patch(ProducerTable, "accept", forgetful)
