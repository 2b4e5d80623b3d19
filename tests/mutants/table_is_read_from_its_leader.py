"""A table is read from the node that leads its database, although another one follows."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.cluster import database_tables

TESTS = [
    "tests/unit/spark/tables/test_table_reading.py::test_nodes_that_follow_are_read_and_the_leader_where_there_is_no_other",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(database_tables, "_LEADER", "follower")
