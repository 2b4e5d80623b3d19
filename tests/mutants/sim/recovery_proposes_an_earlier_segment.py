"""Recovery begins where bookies say that entries are confirmed, be it before the last segment, and puts a segment there.

Defect 2 of the published TLA+ work on the protocol, version 4.13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import EnsembleSegment, LedgerMetadata
    from triplicate.ledger.recovery import AddFailed, AddsAcknowledged, EnsembleReplaced, NoReplacement, Recovery

    handle_add = Recovery._handle_add

    def without_floor(self: Recovery, event: AddsAcknowledged | AddFailed | EnsembleReplaced | NoReplacement) -> None:
        snapshot, first = self._snapshot, self._snapshot.segments[0]
        if isinstance(event, EnsembleReplaced):
            self._snapshot = replace(snapshot, segments=(first,))
        handle_add(self, event)
        self._snapshot = snapshot

    def anywhere(self: LedgerMetadata, first_entry_id: int, ensemble: Sequence[str]) -> LedgerMetadata:
        segments = {segment.first_entry_id: segment for segment in self.segments}
        segments[first_entry_id] = EnsembleSegment(first_entry_id, tuple(ensemble))
        return replace(self, segments=tuple(segment for _, segment in sorted(segments.items())))

    patch(Recovery, "known_confirmed", lambda self: self._answers.last_add_confirmed)
    patch(Recovery, "_handle_add", without_floor)
    patch(LedgerMetadata, "with_ensemble", anywhere)
