"""A cluster that is stopped has the problems of one whose bookies are lost: each is to be decommissioned."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.overview.core.cluster_facts import ClusterFacts

TESTS = [
    "tests/unit/cli/overview/core/test_cluster_problems.py::test_a_cluster_that_is_stopped_has_one_problem",
    "tests/unit/cli/overview/core/test_cluster_problems.py::test_bookies_that_are_all_gone_are_not_to_be_decommissioned",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ClusterFacts, "has_bookie", True)
