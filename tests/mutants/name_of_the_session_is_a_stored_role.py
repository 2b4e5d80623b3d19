"""The functions of privileges look for the session's own name among the roles of the database."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue import catalogue_functions

TESTS = ["tests/unit/sql/pg/rewrite/test_catalogue_queries_privileges.py::test_the_administrator_has_every_right_by_any_name"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(catalogue_functions._Functions, "role_named", staticmethod(lambda name, *_session: name))
