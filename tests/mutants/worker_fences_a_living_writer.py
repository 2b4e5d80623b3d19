"""A replication worker fences an open ledger after the grace period although its writer is at work."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import ledger_repair
from triplicate.autorecovery.core.writer_presence import OpenLedgerView, WriterPresence

TESTS = [
    "tests/unit/autorecovery/test_worker.py::test_a_writer_that_appends_is_not_fenced",
    "tests/unit/autorecovery/test_recovery_pass.py::test_a_ledger_whose_writer_is_at_work_is_left_to_it",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def presence(first: OpenLedgerView, present: OpenLedgerView, grace_s: float) -> WriterPresence:
        return WriterPresence.GONE if present.seen_at - first.seen_at >= grace_s else WriterPresence.UNKNOWN

    patch(ledger_repair, "writer_presence", presence)
