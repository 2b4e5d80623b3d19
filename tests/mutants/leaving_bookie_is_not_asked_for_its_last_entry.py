"""A bookie that is leaving is not asked for the last entry of an open ledger, as if it were lost."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery.repair_tools import BookieStates

TESTS = ["tests/unit/autorecovery/test_worker.py::test_a_bookie_that_is_leaving_shows_that_a_writer_is_gone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(BookieStates, "shows_entries", lambda self, bookie_id: not self.is_lost(bookie_id) and bookie_id not in self.in_limbo)
