"""Waiting forces are not counted against the admission limit, so a flood of them is read without bound."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_add_processor_deferred_sync.py::test_a_million_forces_wait_in_bounded_memory"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core import journal_machine

    patch(journal_machine, "ITEM_OVERHEAD_BYTES", 0)
