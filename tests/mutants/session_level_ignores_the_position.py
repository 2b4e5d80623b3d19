"""A session that was given a position reads a copy that has not reached it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.read_admission import ReadAdmission

TESTS = ["tests/unit/sql/engine/test_read_admission.py::test_a_session_waits_until_the_copy_has_its_position"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def at_once(self: ReadAdmission, position: int) -> None:
        return

    patch(ReadAdmission, "_reach", at_once)
