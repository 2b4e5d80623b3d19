"""A follower that reads the parts of a transaction again goes on from those that it has applied."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage.applier import Applier, LogBatch

TESTS = [
    "tests/unit/sql/storage/test_applier.py::test_a_copy_that_is_interrupted_between_parts_begins_again_with_the_first",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = Applier._is_applied

    def is_applied(self: Applier, batch: LogBatch) -> bool:
        return self._open is None and honest(self, batch)

    patch(Applier, "_is_applied", is_applied)
