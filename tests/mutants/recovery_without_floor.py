"""Recovery believes bookies of a new, empty ensemble that nothing is confirmed, and starts before the last segment."""

from collections.abc import Callable

from triplicate.ledger.recovery import Recovery

TESTS = [
    "tests/unit/ledger/test_recovery.py::test_the_floor_is_the_entry_before_the_last_segment",
    "tests/simulation/test_schedules.py::test_a_recovery_proposes_no_segment_before_the_last",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Recovery, "known_confirmed", lambda self: self._answers.last_add_confirmed)
