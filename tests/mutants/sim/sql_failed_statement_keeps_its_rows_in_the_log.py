"""A failed statement's changes are undone in the leader's copy, but stay in the logged batch."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.schema_versions import RollbackPoint
    from triplicate.sql.executor.writer_connection import WriterConnection

    original = WriterConnection._undo

    def undo(self: WriterConnection, point: RollbackPoint) -> None:
        original(self, point._replace(changes=self._capture.mark() if point.changes else 0))

    patch(WriterConnection, "_undo", undo)
