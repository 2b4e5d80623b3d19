"""A change of an entry checks its version, and not which entry it is: it is applied to the next database or store of the name."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/hosting/test_database_directory_identity.py::test_a_late_change_does_nothing_to_the_next_database",
    "tests/unit/sql/hosting/test_database_directory_identity.py::test_a_late_change_undoes_nothing_of_a_database_that_was_away_meanwhile",
    "tests/unit/kv/hosting/test_store_directory_identity.py::test_a_late_drop_does_nothing_to_the_next_store",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.metadata import IdentifiedNode

    patch(IdentifiedNode, "checks", property(lambda self: []))
