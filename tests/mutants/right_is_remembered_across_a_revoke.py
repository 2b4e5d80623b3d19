"""A statement that was allowed once stays allowed: the rights are checked when it is first run, and never again."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/engine/test_session_rights.py::test_a_revoke_reaches_statements_that_are_prepared_and_transactions_that_are_open",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.access_rights import AccessRights
    from triplicate.sql.engine.database_roles import DatabaseRoles

    original = DatabaseRoles.moved

    def moved(self: DatabaseRoles, schema_version: int, access: AccessRights) -> None:
        allowed = self.allowed
        original(self, schema_version, access)
        self.allowed = allowed

    patch(DatabaseRoles, "moved", moved)
