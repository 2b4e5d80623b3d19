"""A session that asks for a position or a later one gets any copy of the database that is there."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup.core.target import AtPosition
from triplicate.sql.backup.past_databases import _Entry

TESTS = ["tests/unit/sql/backup/test_past_databases.py::test_a_position_or_later_is_the_nodes_own_copy_as_it_is"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    serves = _Entry.serves

    def any_copy(self: _Entry, identity: bytes, target: AtPosition) -> bool:
        return target.or_later or serves(self, identity, target)

    patch(_Entry, "serves", any_copy)
