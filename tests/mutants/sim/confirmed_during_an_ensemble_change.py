"""The last-add-confirmed moves on while an ensemble change is under way, beyond the entry at which the new segment will begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import AdvWriteTracker, WriteTracker

    def whatever_happens(right: Callable[[Any], int]) -> Callable[[Any], int]:
        def advance(self: Any) -> int:
            changing, self.changing = self.changing, False
            confirmed = right(self)
            self.changing = changing
            return confirmed

        return advance

    patch(WriteTracker, "advance", whatever_happens(WriteTracker.advance))
    patch(AdvWriteTracker, "advance", whatever_happens(AdvWriteTracker.advance))
