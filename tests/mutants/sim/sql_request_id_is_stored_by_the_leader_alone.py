"""Followers do not store results under request ids, so a repeat after a change of leaders runs again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

KIND = "databases"
CHECKERS = ("transactions_happen_once",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    import apsw

    from triplicate.sql.storage import applier as following
    from triplicate.sql.storage.sqlite_file import record_batch
    from triplicate.sql.storage.transaction_history import CommitRecord

    def without_requests(connection: apsw.Connection, facts: CommitRecord) -> None:
        record_batch(connection, replace(facts, requests=()))

    patch(following, "record_batch", without_requests)
