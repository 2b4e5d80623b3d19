"""The sessions of a role that was dropped stay open, with the rights of PUBLIC."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/engine/test_session_rights.py::test_the_sessions_of_a_dropped_role_end_on_every_node_and_no_others",
]


def apply(patch: Any) -> None:
    from triplicate.sql.core.database_activity import DatabaseActivity

    patch(DatabaseActivity, "end_dropped", lambda self, roles: None)
