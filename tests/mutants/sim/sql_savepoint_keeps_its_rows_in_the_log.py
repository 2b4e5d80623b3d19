"""Going back to a savepoint undoes its rows in the leader's copy, but not in what is logged."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor.writer_connection import WriterConnection

    def rollback_to(self: WriterConnection, name: str) -> None:
        index = self._find_savepoint(name)
        self._connection.execute(f'rollback to "user {index}"')
        del self._savepoints[index + 1 :]

    patch(WriterConnection, "rollback_to", rollback_to)
