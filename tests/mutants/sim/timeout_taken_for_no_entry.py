"""A read that timed out at a replica counts as its "no such entry"."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import ReadPlan

    patch(ReadPlan, "failed", lambda self, bookie_id, reason: self.absent(bookie_id))
