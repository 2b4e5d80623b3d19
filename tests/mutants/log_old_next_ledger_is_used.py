"""A writer rolls into a ledger created so long ago that a sweep may have deleted it as an orphan."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_writer_short_of_bookies.py::test_a_next_ledger_that_the_sweep_may_take_for_an_orphan_is_not_used"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing import ledger_allocator, segment_roller

    patch(ledger_allocator, "spare_age_s", lambda settings: 1e9)
    patch(segment_roller, "spare_age_s", lambda settings: 1e9)
