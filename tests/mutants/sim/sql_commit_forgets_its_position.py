"""The leader's commit stores the rows without their log position, so they are applied again after it has led."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    import apsw

    from triplicate.sql.executor import writer_connection
    from triplicate.sql.storage.sqlite_file import record_batch
    from triplicate.sql.storage.transaction_history import CommitRecord

    def without_position(connection: apsw.Connection, facts: CommitRecord) -> None:
        (before,) = connection.execute("select position from triplicate_state").fetchall()
        record_batch(connection, facts)
        connection.execute("update triplicate_state set position = ?", before)

    patch(writer_connection, "record_batch", without_position)
