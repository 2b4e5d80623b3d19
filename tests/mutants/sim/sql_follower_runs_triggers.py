"""Triggers run again on followers, beside the rows that they caused on the leader."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    import apsw

    from triplicate.sql.engine import local_copy
    from triplicate.sql.executor.transaction_functions import open_applier_connection
    from triplicate.sql.storage.sqlite_file import ConnectionSetup

    def open_with_triggers(path: str, setup: ConnectionSetup | None = None) -> apsw.Connection:
        connection = open_applier_connection(path, setup)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
        return connection

    patch(local_copy, "open_applier_connection", open_with_triggers)
