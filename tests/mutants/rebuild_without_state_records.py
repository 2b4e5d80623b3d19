"""The index is rebuilt from runs without the state records, so keys and fences are lost."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/test_bookie_crashes.py::test_a_lost_index_is_rebuilt_with_entries_and_fences",
    "tests/crash/test_points.py::test_a_few_crash_points_lose_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.entry_logs import LogContent
    from triplicate.bookie.storage.ledger_storage import LedgerStorage

    read_log = LedgerStorage._read_log

    def without_states(self: LedgerStorage, number: int, path: str, *, with_states: bool) -> LogContent | None:
        return read_log(self, number, path, with_states=False)

    patch(LedgerStorage, "_read_log", without_states)
