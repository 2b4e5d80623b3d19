"""A node that has not read the list of databases yet says of each that it does not exist."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql import HostedDatabases

TESTS = ["tests/unit/sql/hosting/test_database_node.py::test_a_node_starts_while_the_metadata_are_away_and_its_start_can_be_cancelled"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(HostedDatabases, "starting", property(lambda self: False))
