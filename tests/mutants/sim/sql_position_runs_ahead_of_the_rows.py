"""A follower reports the position of rows that it has not applied yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "databases"
CHECKERS = ("sessions_read_their_writes",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import LogEntry
    from triplicate.sql import SqlDatabase

    original = SqlDatabase.apply

    async def run_ahead(self: SqlDatabase, entries: Sequence[LogEntry]) -> int:
        self._moved(entries[-1].first_offset + entries[-1].count, self.schema_version, self.roles.access)
        return await original(self, entries)

    patch(SqlDatabase, "apply", run_ahead)
