"""The state of a cluster does not look for ledgers that logs list and that are gone."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.overview.cluster_sources import ClusterSources

TESTS = [
    "tests/unit/cli/overview/test_cluster_sources.py::test_a_ledger_that_a_log_needs_and_that_is_gone_is_a_problem_of_the_log",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def same(sources: object, logs: object) -> object:
        return logs

    patch(ClusterSources, "_with_missing", same)
