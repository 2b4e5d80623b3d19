"""Entries behind an id that was never appended are completed."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import AdvWriteTracker

    def broken(self: AdvWriteTracker) -> int:
        while not self.changing and self._pending:
            following = min(self._pending)
            if not self._has_ack_quorum(following):
                break
            self.last_add_confirmed = following
            del self._pending[following]
        return self.last_add_confirmed

    patch(AdvWriteTracker, "advance", broken)
