"""An additional read of a late entry is paid from the budget twice."""

from __future__ import annotations

from collections.abc import Callable

CHECKERS = ("hedging_keeps_its_budget",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.hedged_reads import HedgedReads

    honest = HedgedReads.is_due

    def counted_twice(self: HedgedReads, bookie_id: str, waited_s: float, *, has_other: bool) -> bool:
        is_due = honest(self, bookie_id, waited_s, has_other=has_other)
        if is_due:
            self.budget.spend()
        return is_due

    patch(HedgedReads, "is_due", counted_twice)
