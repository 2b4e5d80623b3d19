"""Of two ensemble changes that begin at the same entry, metadata keeps the first (BookKeeper issues 4651, 4660)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import LedgerMetadata

    with_ensemble = LedgerMetadata.with_ensemble

    def first_of_each_entry(self: LedgerMetadata, first_entry_id: int, ensemble: Sequence[str]) -> LedgerMetadata:
        if len(self.segments) > 1 and self.last_segment.first_entry_id == first_entry_id:
            return self
        return with_ensemble(self, first_entry_id, ensemble)

    patch(LedgerMetadata, "with_ensemble", first_of_each_entry)
