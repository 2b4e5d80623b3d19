"""A refused statement leaves no line in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TESTS = [
    "tests/unit/sql/engine/test_session_rights.py::test_refusals_and_changes_of_roles_and_of_the_schema_are_audited_without_constants",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.audit import AuditEvent
    from triplicate.sql.engine.database_roles import DatabaseRoles

    original = DatabaseRoles.audit

    def audit(self: DatabaseRoles, event: AuditEvent, facts: Mapping[str, object]) -> None:
        if event is not AuditEvent.STATEMENT_REFUSED:
            original(self, event, facts)

    patch(DatabaseRoles, "audit", audit)
