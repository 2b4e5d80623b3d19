"""A node that follows answers linearizable reads from its copy."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.read_admission import ReadAdmission

TESTS = ["tests/unit/sql/engine/test_read_admission.py::test_only_the_leader_answers_linearizable_reads"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def always(self: ReadAdmission, leadership: Leadership | None, sql: str) -> bool:
        return True

    patch(ReadAdmission, "is_plain", always)
