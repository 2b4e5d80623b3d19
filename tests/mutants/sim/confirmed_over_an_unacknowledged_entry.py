"""The last-add-confirmed jumps to the greatest entry that an ack quorum has, over one before it that lacks its quorum."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import WriteTracker

    def greatest(self: WriteTracker) -> int:
        quorate = [e for e in range(self.last_add_confirmed + 1, self.last_add_pushed + 1) if self._has_ack_quorum(e)]
        return max(quorate, default=self.last_add_confirmed)

    patch(WriteTracker, "_confirmed_prefix", greatest)
