"""A bookie answers a fence without writing it to its journal first, so a restart loses it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/test_bookie_crashes.py::test_fences_survive_a_power_loss_wherever_they_stand",
    "tests/simulation/test_losses.py::test_a_fence_survives_the_restart_of_its_bookie",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle
    from triplicate.bookie.server.request_processor import RequestProcessor

    def answer_at_once(self: RequestProcessor, handle: LedgerHandle, then: Callable[[bool], None]) -> None:
        then(True)

    patch(RequestProcessor, "_journal_fence", answer_at_once)
