"""An acknowledgement of a replaced bookie still counts for its position, and its successor is not sent the entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import WriteTracker

    replace, pending_of = WriteTracker.replace, WriteTracker.pending_of

    def still_counting(self: WriteTracker, ensemble: Sequence[str]) -> list[int]:
        reaches, ahead = list(self._acked), [set(stragglers) for stragglers in self._ahead]
        changed = replace(self, ensemble)
        for position in changed:
            self._acked[position], self._ahead[position] = reaches[position], ahead[position]
        return changed

    def unacknowledged_of(self: WriteTracker, position: int) -> list[int]:
        reach, ahead = self._acked[position], self._ahead[position]
        return [entry_id for entry_id in pending_of(self, position) if entry_id > reach and entry_id not in ahead]

    patch(WriteTracker, "replace", still_counting)
    patch(WriteTracker, "pending_of", unacknowledged_of)
