"""With delayed changes, a read-only bookie stays in the ensemble, although it will refuse every further entry."""

from collections.abc import Callable

from triplicate.ledger.ensemble_change import EnsembleChange

TESTS = [
    "tests/unit/client/write/test_ensemble_changer_absent_bookies.py::test_a_delayed_change_replaces_a_read_only_bookie_at_once",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: EnsembleChange) -> bool:
        return self._tracker.is_endangered or not self._settings.delayed

    patch(EnsembleChange, "_is_change_wanted", broken)
