"""A backup that is complete fails when it cannot be recorded."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_recorded_backups.py::test_a_backup_that_cannot_be_recorded_is_complete_and_the_caller_is_told"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.hosting import database_backups

    patch(database_backups, "TriplicateError", ZeroDivisionError)
