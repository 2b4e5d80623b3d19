"""The next auditor does not continue the absences that the one before has seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triplicate.autorecovery.core.lost_bookies import LostBookies

TESTS = ["tests/unit/autorecovery/test_auditor.py::test_the_delay_goes_on_under_the_next_auditor"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def forget(self: LostBookies, absent_s: Mapping[str, float]) -> None:
        pass

    patch(LostBookies, "resume", forget)
