"""A copy that has not reached the session's position says that a table does not exist."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.read_admission import ReadAdmission, confirm

TESTS = [
    "tests/unit/sql/engine/test_read_admission.py::test_a_table_that_the_copy_does_not_have_yet_is_waited_for[ReadLevel.SESSION-False]",
    "tests/unit/sql/engine/test_read_admission.py::test_a_table_that_the_copy_does_not_have_yet_is_waited_for[ReadLevel.BOUNDED-True]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def admit_refusal(self: ReadAdmission, leadership: Leadership | None, *, has_snapshot: bool) -> None:
        await confirm(leadership, self._waits)

    patch(ReadAdmission, "admit_refusal", admit_refusal)
