"""A bookie that restarts every minute counts as lost, since the time of each absence is added up from the first one."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate.ledger import Absences

TESTS = [
    "tests/unit/ledger/test_absence.py::test_a_bookie_that_came_back_is_absent_from_the_start",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def observe(absences: Absences, used: Collection[str], registered: Collection[str], now: float) -> list[str]:
        since = absences._since
        for bookie_id in used:
            if bookie_id not in registered:
                since.setdefault(bookie_id, now)
        return sorted(name for name in used if name not in registered and now - since[name] >= absences._limit_s)

    patch(Absences, "observe", observe)
