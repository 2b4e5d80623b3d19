"""A privilege that was granted on one table counts on every other."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/core/test_access_rights.py::test_a_grant_is_for_one_table_one_privilege_and_one_role"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.access_rights import AccessRights
    from triplicate.sql.core.rights import Action

    def granted(self: AccessRights, relation: str, grantee: str) -> frozenset[Action]:
        return frozenset(action for (_, to), actions in self.grants.items() if to == grantee for action in actions)

    patch(AccessRights, "granted", granted)
