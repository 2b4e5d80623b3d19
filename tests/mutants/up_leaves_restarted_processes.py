"""A process that `up` restarts is not among its children: it outlives `up`, and no file names it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/cli/supervision/test_local_processes.py::test_a_launched_process_is_noted_and_ends_with_the_cluster"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.supervision.local_processes import LocalCluster

    def launch(self: LocalCluster, name: str) -> None:
        self._launched[name], _ = self._spawn(self.folder.member(name))

    patch(LocalCluster, "launch", launch)
