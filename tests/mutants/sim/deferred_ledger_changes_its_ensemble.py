"""A ledger with deferred sync replaces a failed bookie, and loses the unsynced entries that only this bookie acknowledged."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.add_pipeline import AddPipeline
    from triplicate.errors import BookieError

    failed = AddPipeline.bookie_failed

    def broken(self: AddPipeline, bookie_id: str, error: BookieError) -> None:
        self._forces.deferred_sync, kept = False, self._forces.deferred_sync
        failed(self, bookie_id, error)
        self._forces.deferred_sync = kept

    patch(AddPipeline, "bookie_failed", broken)
