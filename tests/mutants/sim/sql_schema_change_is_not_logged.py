"""A change of the schema is made on the leader and not logged."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.records import Operation, SchemaChange
    from triplicate.sql.executor.change_capture import ChangeCapture

    original = ChangeCapture.add

    def add(self: ChangeCapture, operation: Operation) -> None:
        if not (isinstance(operation, SchemaChange) and "index" in operation.sql.lower()):
            original(self, operation)

    patch(ChangeCapture, "add", add)
