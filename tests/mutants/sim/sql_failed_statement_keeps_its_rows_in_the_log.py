"""What a failed statement had changed until then is undone in the leader's copy, but not in what is logged."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor.writer_connection import WriterConnection

    original = WriterConnection._undo

    def undo(self: WriterConnection, mark: int, version: int, digest: bytes) -> None:
        original(self, self._capture.mark() if mark else 0, version, digest)

    patch(WriterConnection, "_undo", undo)
