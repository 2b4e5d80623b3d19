"""The new ensemble is used while its metadata are still being written (BookKeeper's issue 1591)."""

from collections.abc import Callable

from triplicate.ledger.ensemble_change import Command, EnsembleChange, EnsembleWritten, WriteEnsemble

TESTS = [
    "tests/property/test_ensemble_change.py::test_entries_are_confirmed_only_by_bookies_that_the_metadata_names",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    decide = EnsembleChange.decide

    def broken(self: EnsembleChange, now: float) -> list[Command]:
        commands = decide(self, now)
        if any(isinstance(command, WriteEnsemble) for command in commands):
            self.step(EnsembleWritten(), now)
            commands += decide(self, now)
        return commands

    patch(EnsembleChange, "decide", broken)
