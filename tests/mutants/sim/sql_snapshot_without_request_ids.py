"""A snapshot omits the results under request ids, so a copy loaded from it runs a repeat again."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("transactions_happen_once", "copies_are_equal")


def apply(patch: Callable[[object, str, object], None]) -> None:
    import apsw

    from triplicate.sql.storage.sqlite_snapshots import SqliteCopy

    usual = SqliteCopy._verify

    def without_requests(self: SqliteCopy) -> None:
        connection = apsw.Connection(self._path)
        connection.execute("delete from triplicate_requests")
        connection.close(True)
        usual(self)

    patch(SqliteCopy, "_verify", without_requests)
