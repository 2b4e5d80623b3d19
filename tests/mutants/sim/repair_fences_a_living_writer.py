"""A worker holds the writer of an open ledger to be gone once the grace period is over, without looking at what it did."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("living_writers_are_not_fenced",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import ledger_repair
    from triplicate.autorecovery.core.writer_presence import OpenLedgerView, WriterPresence

    def gone_by_time(first: OpenLedgerView, present: OpenLedgerView, grace_s: float) -> WriterPresence:
        return WriterPresence.GONE if present.seen_at - first.seen_at >= grace_s else WriterPresence.UNKNOWN

    patch(ledger_repair, "writer_presence", gone_by_time)
