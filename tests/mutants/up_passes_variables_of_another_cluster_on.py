"""`up` passes every variable of its shell on to its processes, which join the cluster that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TESTS = [
    "tests/unit/cli/supervision/test_cluster_folder.py::test_variables_of_another_cluster_do_not_reach_the_processes_of_this_one[False]",
    "tests/unit/cli/supervision/test_local_processes.py::test_the_variable_of_another_cluster_reaches_no_process_at_start_or_restart",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.supervision.cluster_folder import ClusterFolder

    def environment_of_processes(self: ClusterFolder, environment: Mapping[str, str]) -> dict[str, str]:
        return dict(environment)

    patch(ClusterFolder, "environment_of_processes", environment_of_processes)
