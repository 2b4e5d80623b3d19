"""A follower that executes the row operations of several transactions together accepts one that changed no row."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/storage/test_applier.py::test_a_row_that_is_missing_or_there_already_is_found_and_nothing_is_applied"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.storage.applier import Applier

    def execute(self: Applier) -> None:
        group, self._group = self._group, None
        if group is not None:
            self._cursor.executemany(group.sql, group.rows)

    patch(Applier, "_execute_group", execute)
