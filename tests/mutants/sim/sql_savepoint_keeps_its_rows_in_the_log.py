"""ROLLBACK TO undoes rows in the leader's copy, but keeps them in the logged batch."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor.writer_connection import WriterConnection

    def rollback_to(self: WriterConnection, name: str) -> None:
        level = self._schema.level_of(name)
        self._connection.execute(f'rollback to "user {level}"')
        self._schema.back_to(level)

    patch(WriterConnection, "rollback_to", rollback_to)
