"""A restored database goes on with the epoch behind its content, which the database that it was copied from has used as well."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.hosting import restoring

TESTS = ["tests/unit/sql/hosting/test_restoring.py::test_a_restored_database_equals_the_one_that_was_backed_up_and_goes_on"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(restoring, "EPOCHS_APART", 0)
