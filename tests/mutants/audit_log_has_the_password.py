"""The audit log repeats what a client sent as its proof."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/pg/protocol/test_role_proof.py::test_the_audit_log_tells_the_cause_and_no_secret",
]


def apply(patch: Any) -> None:
    from triplicate.sql.pg.protocol.logins import Logins

    refuse = Logins.refuse

    def talkative(self: Logins, attempt: Any, error: Any) -> None:
        databases = [self._databases.get(name) for name in self._databases.names()]
        error.logged = str([role.verifier for database in databases for role in database.roles.values()])  # type: ignore[union-attr]
        refuse(self, attempt, error)

    patch(Logins, "refuse", talkative)
