"""The state of a cluster counts the nodes that are registered only."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.overview.core.cluster_facts import ClusterFacts

TESTS = [
    "tests/unit/cli/overview/core/test_cluster_problems.py::test_a_node_that_does_not_run_is_one_problem_and_names_what_lacks_a_copy",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ClusterFacts, "absent_nodes", property(lambda facts: ()))
