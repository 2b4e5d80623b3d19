"""A node that has not read the list of databases yet answers that a database does not exist."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql import DatabaseNode

TESTS = ["tests/unit/sql/hosting/test_database_node.py::test_a_node_starts_while_the_metadata_are_away_and_can_be_stopped"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(DatabaseNode, "starting", property(lambda self: False))
