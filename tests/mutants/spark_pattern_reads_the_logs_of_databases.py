"""A pattern for the names of logs takes in those of databases."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_log_source_patterns.py::test_a_batch_holds_all_logs_of_users_whose_whole_names_match"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster.access import LogAccess

    patch(LogAccess, "_users_state", LogAccess._state)
