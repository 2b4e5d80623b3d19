"""All records of a database's backups are kept."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/backup/core/test_backup_records.py::test_the_newest_records_are_kept_in_the_order_of_their_making"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.backup.core import backup_records

    patch(backup_records, "KEPT", 1_000_000)
