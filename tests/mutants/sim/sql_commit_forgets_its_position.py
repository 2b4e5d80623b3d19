"""The leader's commit holds the rows but not the position they belong to, so they are applied again after it has led."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    import apsw

    from triplicate.sql import writer
    from triplicate.sql.kept import BatchFacts
    from triplicate.sql.store import record_batch

    def without_position(connection: apsw.Connection, facts: BatchFacts) -> None:
        (before,) = connection.execute("select position from triplicate_state").fetchall()
        record_batch(connection, facts)
        connection.execute("update triplicate_state set position = ?", before)

    patch(writer, "record_batch", without_position)
