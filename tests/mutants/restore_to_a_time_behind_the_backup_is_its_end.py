"""A backup that does not reach the time that is wanted is restored as it ends, without the transactions between."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import backup_files

TESTS = ["tests/unit/sql/backup/test_backup_writer.py::test_a_chain_leads_to_the_database_behind_each_transaction"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(backup_files, "_check_end", lambda backup, target: None)
