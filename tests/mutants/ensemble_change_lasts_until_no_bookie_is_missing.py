"""A writer without a replacement for a failed bookie confirms nothing until its ensemble is complete again."""

from collections.abc import Callable

from triplicate.errors import TriplicateError
from triplicate.ledger.ensemble_change import Command, EnsembleChange

TESTS = [
    "tests/property/test_ensemble_change.py::test_a_writer_without_a_spare_bookie_continues_while_it_has_ack_quorums",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    continue_without = EnsembleChange._continue_without

    def broken(self: EnsembleChange, now: float, limit_s: float, error: TriplicateError) -> list[Command]:
        is_changing = self._tracker.changing
        continue_without(self, now, limit_s, error)
        if is_changing:
            self._tracker.changing = True
        return []

    patch(EnsembleChange, "_continue_without", broken)
