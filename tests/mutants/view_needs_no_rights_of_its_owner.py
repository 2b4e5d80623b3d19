"""A view may read every table, without regard to its owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable

TESTS = ["tests/unit/sql/engine/test_session_rights.py::test_a_view_reads_with_the_rights_of_its_owner_and_not_of_its_reader"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.access_rights import AccessRights, Refusal
    from triplicate.sql.core.rights import Right

    original = AccessRights.refusal

    def refusal(self: AccessRights, role: str, rights: Iterable[Right]) -> Refusal | None:
        return original(self, role, [right for right in rights if not right.definer])

    patch(AccessRights, "refusal", refusal)
