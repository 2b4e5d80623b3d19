"""The change feed asks database nodes for columns without the role and the password of the settings."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.cluster import database_tables

TESTS = [
    "tests/unit/spark/cluster/test_database_tables.py::test_a_secured_node_is_asked_with_the_role_and_the_authority_of_the_named_file",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(database_tables, "_login_options", lambda environment: {"user": environment.get("PGUSER", "spark")})
