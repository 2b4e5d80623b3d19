"""A follower applies a batch a second time."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage.applier import Applier

TESTS = ["tests/unit/sql/executor/test_writer_connection.py::test_a_batch_is_applied_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def never(self: Applier, batch: object) -> bool:
        return False

    patch(Applier, "_is_applied", never)
