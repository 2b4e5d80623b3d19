"""A view reads its tables with the rights of the role that reads the view."""

from __future__ import annotations

from collections.abc import Callable, Iterable

TESTS = [
    "tests/unit/sql/core/test_access_rights.py::test_a_view_is_checked_by_the_rights_of_its_owner",
    "tests/unit/sql/engine/test_session_rights.py::test_a_view_reads_with_the_rights_of_its_owner_and_not_of_its_reader",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.access_rights import AccessRights, Refusal
    from triplicate.sql.core.rights import Right

    original = AccessRights.refusal

    def refusal(self: AccessRights, role: str, rights: Iterable[Right]) -> Refusal | None:
        return original(self, role, [right._replace(definer="") for right in rights])

    patch(AccessRights, "refusal", refusal)
