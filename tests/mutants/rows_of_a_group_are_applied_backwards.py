"""A follower executes the row operations that waited in the reverse order, so the later of two batches is applied first."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/storage/test_applier.py::test_the_later_of_two_updates_of_a_row_wins",
    "tests/property/test_applier_random_statements.py::test_a_follower_that_applies_several_batches_at_once_holds_the_same",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.storage.applier import Applier

    execute = Applier._execute_group

    def backwards(self: Applier) -> None:
        if self._group is not None:
            self._group.rows.reverse()
        execute(self)

    patch(Applier, "_execute_group", backwards)
