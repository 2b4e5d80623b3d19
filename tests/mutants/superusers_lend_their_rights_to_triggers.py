"""Statements of superusers and of the administrator run without a check of the rights with which others' triggers and views act."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_session_rights.py::test_a_bulk_change_of_a_superuser_checks_the_rights_of_the_triggers_owner"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.access_rights import AccessRights

    patch(AccessRights, "owners_are_superusers", property(lambda self: True))
