"""A fence is kept in memory until the next flush and answered without having been journaled."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/test_crash.py::test_fences_survive_a_power_loss_wherever_they_stand"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.ledgers import LedgerHandle
    from triplicate.bookie.requests import Requests

    def only_in_memory(self: Requests, handle: LedgerHandle, then: Callable[[bool], None]) -> None:
        self.storage.ledgers.touch_state(handle)
        then(True)

    patch(Requests, "_journal_fence", only_in_memory)
