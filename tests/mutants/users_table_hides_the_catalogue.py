"""A user's table with the name of one of the catalogue is read in its place."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import plans

TESTS = ["tests/unit/sql/pg/protocol/test_plans.py::test_a_users_table_that_hides_one_of_the_catalogue_is_named"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plans, "is_catalogue_table", lambda *_: True)
