"""The records of a database's backups stay when its log is deleted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client import Client

TESTS = ["tests/unit/sql/hosting/test_recorded_backups.py::test_records_stay_with_a_renamed_and_an_undeleted_database_and_go_with_its_log"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.hosting import dropping

    async def keep(client: Client, identity: bytes) -> None:
        return

    patch(dropping, "forget_backups", keep)
