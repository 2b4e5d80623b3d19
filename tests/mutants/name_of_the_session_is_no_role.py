"""pg_roles lists the roles of the database alone, so that current_user of an administrator's session joins to nothing."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue.role_relations import RoleCatalogue

TESTS = ["tests/unit/sql/pg/rewrite/test_catalogue_queries.py::test_the_name_of_a_session_is_a_role"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(RoleCatalogue, "of_session", lambda *_: [])
