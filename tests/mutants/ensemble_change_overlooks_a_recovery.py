"""A writer proposes its change of ensemble again after a recovery has begun, as if it still owned the ledger."""

from collections.abc import Callable
from dataclasses import replace

from triplicate.ledger import LedgerMetadata, LedgerState
from triplicate.ledger.ensemble_change import EnsembleChange

TESTS = [
    "tests/property/test_ensemble_change.py::test_entries_are_confirmed_only_by_bookies_that_the_metadata_names",
    "tests/unit/client/write/test_ensemble_changer.py::test_a_ledger_that_is_being_recovered_is_not_changed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    judge = EnsembleChange._judge

    def broken(self: EnsembleChange, metadata: LedgerMetadata) -> None:
        if metadata.state is LedgerState.IN_RECOVERY:
            metadata = replace(metadata, state=LedgerState.OPEN)
        judge(self, metadata)

    patch(EnsembleChange, "_judge", broken)
