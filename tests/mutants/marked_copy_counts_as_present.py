"""A copy that is marked as missing counts when a bookie with another copy is to be stopped."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.overview.core.stop_verdict import AvailableCopies

TESTS = [
    "tests/unit/cli/overview/core/test_stop_verdict.py::test_marked_copies_do_not_count",
    "tests/unit/cli/server_commands/test_safe_to_stop.py::test_marks_and_replaced_disks_count",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def has_copies(copies: AvailableCopies, ledger_id: int, bookie_id: str) -> bool:
        return bookie_id in copies.present

    patch(AvailableCopies, "has_copies", has_copies)
