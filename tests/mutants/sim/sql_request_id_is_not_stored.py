"""The results of a request id are not stored, so a repeat runs again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    import apsw

    from triplicate.sql import apply as following
    from triplicate.sql import writer
    from triplicate.sql.kept import BatchFacts
    from triplicate.sql.store import record_batch

    def without_requests(connection: apsw.Connection, facts: BatchFacts) -> None:
        record_batch(connection, replace(facts, requests=()))

    patch(writer, "record_batch", without_requests)
    patch(following, "record_batch", without_requests)
