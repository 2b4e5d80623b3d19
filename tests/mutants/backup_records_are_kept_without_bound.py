"""All records of a database's backups are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.backup.core.backup_records import BackupRecord

TESTS = ["tests/unit/sql/backup/core/test_backup_records.py::test_the_newest_records_are_kept_in_the_order_of_their_making"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.backup.core import backup_records

    def all_of_them(records: Sequence[BackupRecord], record: BackupRecord) -> tuple[BackupRecord, ...]:
        return tuple(sorted((*records, record), key=lambda one: one.made_ms))

    patch(backup_records, "with_record", all_of_them)
