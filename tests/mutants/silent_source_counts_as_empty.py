"""A source of the cluster's status that does not answer counts as one without items."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from triplicate.cli.overview.core import cluster_problems
from triplicate.cli.overview.core.cluster_facts import ClusterFacts
from triplicate.cli.overview.core.cluster_problems import Problem

TESTS = [
    "tests/unit/cli/overview/core/test_cluster_problems.py::test_one_wound_is_one_problem",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def nothing(facts: ClusterFacts) -> Iterator[Problem]:
        return iter(())

    patch(cluster_problems, "_silent_sources", nothing)
