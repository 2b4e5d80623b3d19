"""A bounded read is answered from a copy of any age."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.read_admission import ReadAdmission

TESTS = [
    "tests/unit/sql/engine/test_read_admission.py::test_a_bounded_read_waits_until_the_copy_is_recent",
    "tests/unit/sql/engine/test_read_admission.py::test_a_copy_whose_age_is_unknown_refuses_bounded_reads_and_answers_others",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def at_once(self: ReadAdmission, max_staleness_s: float) -> float:
        return float("inf")

    patch(ReadAdmission, "_be_recent", at_once)
