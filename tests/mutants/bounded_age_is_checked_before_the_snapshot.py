"""A process that was suspended between its look at the age and its snapshot answers from the old state."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.read_admission import ReadAdmission

TESTS = ["tests/unit/sql/engine/test_read_admission.py::test_a_snapshot_that_was_taken_too_late_is_taken_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    confirmed = ReadAdmission.is_confirmed

    async def only_leaders(self: ReadAdmission, leadership: Leadership | None, valid_until: float) -> bool:
        return await confirmed(self, leadership, float("inf"))

    patch(ReadAdmission, "is_confirmed", only_leaders)
