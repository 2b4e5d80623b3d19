"""Each statement of a reading transaction sees the newest state instead of one snapshot."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor.reader_connection import ReaderConnection
    from triplicate.sql.storage.sqlite_file import read_state

    def begin(self: ReaderConnection) -> int:
        return read_state(self._open().connection).position

    patch(ReaderConnection, "begin", begin)
    patch(ReaderConnection, "begin_now", begin)
