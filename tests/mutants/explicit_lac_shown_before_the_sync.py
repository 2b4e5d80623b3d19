"""A bookie shows readers an explicit last-add-confirmed before its sync, so a crash revokes it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/storage/test_storage_explicit_lac.py::test_a_record_that_is_not_synced_yet_is_shown_to_nobody",
    "tests/unit/bookie/storage/test_storage_explicit_lac.py::test_a_long_poll_sleeps_until_the_record_is_synced",
    "tests/crash/test_points.py::test_acknowledged_entries_survive_a_crash_at_any_point[2-2]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle

    accept = LedgerHandle.accept_explicit_lac

    def show_at_once(self: LedgerHandle, record: bytes) -> None:
        accept(self, record)
        self.publish_explicit_lac(record)

    patch(LedgerHandle, "accept_explicit_lac", show_at_once)
