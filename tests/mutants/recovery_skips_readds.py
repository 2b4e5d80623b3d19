"""Recovery counts an entry found on one bookie as confirmed, instead of writing it to an ack quorum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/simulation/test_losses.py::test_a_tail_stored_by_few_bookies_is_complete_after_recovery"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import WriteTracker
    from triplicate.ledger.recovery import Recovery

    def found_is_enough(self: Recovery, tracker: WriteTracker, found: Any) -> None:
        entry_id = tracker.push()
        self._unconfirmed[entry_id] = found
        for bookie_id in tracker.ensemble:
            tracker.acknowledge(bookie_id, (entry_id,))

    patch(Recovery, "_write", found_is_enough)
