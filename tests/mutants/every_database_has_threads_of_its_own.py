"""Each database of a node starts threads of its own, so their number grows with the databases."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/executor/test_threads.py::test_many_databases_use_no_more_threads_than_the_settings_say"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime import Worker, real_host
    from triplicate.sql.executor.threads import SharedThreads

    def own(self: SharedThreads, database: str) -> Worker:
        return real_host("node").new_worker(f"sql-{database}-writer")

    patch(SharedThreads, "writer", own)
