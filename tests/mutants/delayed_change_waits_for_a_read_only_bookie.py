"""With delayed changes, a read-only bookie stays in the ensemble like any that failed, though it will refuse the next entry too."""

from collections.abc import Callable

from triplicate.client.write.ensemble_changer import EnsembleChanger

TESTS = [
    "tests/unit/client/test_absent_bookies.py::test_a_delayed_change_replaces_a_read_only_bookie_at_once",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(self: EnsembleChanger) -> bool:
        return self._tracker.is_endangered or not self._context.settings.delay_ensemble_change

    patch(EnsembleChanger, "_is_change_wanted", broken)
