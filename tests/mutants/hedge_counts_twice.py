"""A late read is paid from the budget twice, and counted twice."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.hedged_reads import HedgedReads

TESTS = ["tests/unit/client/test_hedged_reads.py::test_each_additional_read_is_counted_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = HedgedReads.is_due

    def counted_twice(self: HedgedReads, bookie_id: str, waited_s: float, *, has_other: bool) -> bool:
        is_due = honest(self, bookie_id, waited_s, has_other=has_other)
        if is_due:
            self.budget.spend()
            self._late.inc()
        return is_due

    patch(HedgedReads, "is_due", counted_twice)
