"""One bookie that cannot start keeps the whole local cluster from serving."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triplicate.cli.supervision.local_processes import LocalCluster, RunningProcess
from triplicate.errors import EnvironmentFault

TESTS = ["tests/unit/cli/supervision/test_local_processes.py::test_the_others_serve_without_one_that_fails_and_one_that_is_late"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    await_ready = LocalCluster._await_ready

    def all_of_them(self: LocalCluster, waiting: Mapping[int, RunningProcess]) -> dict[str, str]:
        for problem in await_ready(self, waiting).values():
            raise EnvironmentFault(problem)
        return {}

    patch(LocalCluster, "_await_ready", all_of_them)
