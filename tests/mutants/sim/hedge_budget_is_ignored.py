"""Every late read is sent to another replica, at any share of all reads."""

from __future__ import annotations

from collections.abc import Callable

CHECKERS = ("hedging_keeps_its_budget",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger.hedging import HedgeBudget

    def spend_what_is_not_there(self: HedgeBudget) -> bool:
        self.spend()
        return True

    patch(HedgeBudget, "try_spend", spend_what_is_not_there)
