"""A stop after which no bookie has a copy of some entries counts as safe."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.overview.core.stop_verdict import HarmedLedger, StopCheck
from triplicate.ledger import LedgerMetadata

TESTS = [
    "tests/unit/cli/overview/core/test_stop_verdict.py::test_a_closed_ledger_needs_one_copy_of_each_entry",
    "tests/unit/cli/server_commands/test_safe_to_stop.py::test_absent_and_silent_bookies_have_no_copies",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def without_copy(check: StopCheck, ledger_id: int, metadata: LedgerMetadata) -> HarmedLedger | None:
        return None

    patch(StopCheck, "_without_copy", without_copy)
