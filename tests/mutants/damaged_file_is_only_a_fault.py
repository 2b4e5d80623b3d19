"""A damaged local file counts as a passing fault, so the copy is never rebuilt."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/hosting/test_database_node.py::test_a_damaged_copy_is_set_aside_and_the_other_databases_are_served",
    "tests/unit/sql/hosting/test_database_node.py::test_a_copy_that_is_damaged_while_it_follows_is_set_aside",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine import local_copy
    from triplicate.sql.storage import local_copies

    for module in (local_copies, local_copy):
        patch(module, "is_damage", lambda error: False)
