"""A pattern for the names of logs matches a part of a name."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_log_source_patterns.py::test_a_batch_holds_all_logs_of_users_whose_whole_names_match"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.core.log_options import LogReadOptions, compiled

    patch(LogReadOptions, "reads", lambda self, log: compiled(self.pattern).search(log) is not None if self.pattern else log in self.logs)
