"""Recovery's copies claim entries as confirmed which are so only in ensembles that the metadata does not name yet."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger.recovery import Recovery, RecoveryAdd

    def broken(self: Recovery, bookie_id: str, entry_id: int) -> None:
        tracker = self._tracker
        assert tracker is not None
        if bookie_id not in self._failed:
            found = self._unconfirmed[entry_id]
            self._commands.append(RecoveryAdd(entry_id, bookie_id, tracker.last_add_confirmed, found.length, found.payload))

    patch(Recovery, "_send", broken)
