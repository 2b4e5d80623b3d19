"""A superuser reads of the past only relations whose owners have rights now."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/backup/test_past_databases.py::test_superusers_read_all_of_the_past"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.backup.past_databases import PastAccess

    patch(PastAccess, "owners_are_superusers", property(lambda self: False))
