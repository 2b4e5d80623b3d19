"""A ledger with deferred sync replaces a failed bookie, and loses the unsynced entries that only this bookie acknowledged."""

from collections.abc import Callable

from triplicate.client.write.add_pipeline import AddPipeline
from triplicate.errors import BookieError

TESTS = [
    "tests/unit/client/write/test_force.py::test_a_failed_bookie_ends_a_writer_with_deferred_sync_and_its_ensemble_stays",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    failed = AddPipeline.bookie_failed

    def broken(self: AddPipeline, bookie_id: str, error: BookieError) -> None:
        self._forces.deferred_sync, kept = False, self._forces.deferred_sync
        failed(self, bookie_id, error)
        self._forces.deferred_sync = kept

    patch(AddPipeline, "bookie_failed", broken)
