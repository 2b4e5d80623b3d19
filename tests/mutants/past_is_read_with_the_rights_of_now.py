"""A role reads of the past everything to which it has a right by name now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from triplicate.sql.backup.past_databases import PastAccess
from triplicate.sql.core.access_rights import AccessRights, Refusal
from triplicate.sql.core.rights import Right

TESTS = ["tests/unit/sql/backup/test_past_databases.py::test_a_role_reads_of_the_past_what_it_may_read_now_and_might_then"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def refusal(self: PastAccess, role: str, rights: Iterable[Right]) -> Refusal | None:
        return AccessRights.refusal(self, role, rights)

    patch(PastAccess, "refusal", refusal)
