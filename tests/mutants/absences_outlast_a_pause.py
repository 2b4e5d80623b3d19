"""The auditor goes on with absences from before auto-recovery was disabled."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import Auditor

TESTS = [
    "tests/unit/autorecovery/test_auditor.py::test_a_return_during_a_pause_begins_the_delay_again",
    "tests/unit/autorecovery/test_auditor.py::test_a_return_during_a_pause_ends_a_recorded_absence",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def nothing(auditor: Auditor) -> None:
        pass

    patch(Auditor, "_end_absences", nothing)
