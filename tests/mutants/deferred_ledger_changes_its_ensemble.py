"""A bookie that fails a ledger with deferred sync is replaced, and with it goes what it alone acknowledged and others have not synced."""

from collections.abc import Callable

from triplicate.client.adds import LedgerAdds
from triplicate.errors import BookieError

TESTS = [
    "tests/unit/client/test_force.py::test_a_failed_bookie_ends_a_writer_with_deferred_sync_and_its_ensemble_stays",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    failed = LedgerAdds.bookie_failed

    def broken(self: LedgerAdds, bookie_id: str, error: BookieError) -> None:
        self.deferred_sync, kept = False, self.deferred_sync
        failed(self, bookie_id, error)
        self.deferred_sync = kept

    patch(LedgerAdds, "bookie_failed", broken)
