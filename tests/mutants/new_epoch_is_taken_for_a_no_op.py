"""A follower skips every control entry, also the one that shows that a new epoch has begun."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_sql_database.py::test_a_follower_stores_the_epoch_of_a_leader_that_has_not_written"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql import SqlDatabase

    patch(SqlDatabase, "_is_known_control", lambda self, entry: entry.is_control)
