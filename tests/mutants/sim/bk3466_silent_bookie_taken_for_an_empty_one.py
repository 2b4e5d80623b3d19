"""A bookie that is not heard, or whose connection is lost, counts as one that knows no such ledger (BookKeeper issue 3466)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import LastConfirmed

    patch(LastConfirmed, "failed", lambda self, position, reason: self.nothing_there(position))
