"""A role that may read a table now reads what another table had under its name."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup.relation_names import RelationNames

TESTS = ["tests/unit/sql/backup/test_past_databases.py::test_a_right_to_a_name_is_none_to_the_table_that_had_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(RelationNames, "now", lambda self, name: name)
