"""A snapshot omits the results under request ids, so a copy loaded from it runs a repeat again."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("transactions_happen_once", "copies_are_equal")


def apply(patch: Callable[[object, str, object], None]) -> None:
    import apsw

    from triplicate.sql.storage import sqlite_copy
    from triplicate.sql.storage.sqlite_file import ConnectionSetup

    check = sqlite_copy.check_copy

    def without_requests(scope: sqlite_copy.CopyScope, setup: ConnectionSetup | None, position: int) -> None:
        connection = apsw.Connection(scope.path)
        connection.execute("delete from triplicate_requests")
        connection.close(True)
        check(scope, setup, position)

    patch(sqlite_copy, "check_copy", without_requests)
