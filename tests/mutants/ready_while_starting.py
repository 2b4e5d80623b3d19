"""A process reports ready as soon as it has a port, and a node even before its databases are open."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/cli/process/test_probes.py::test_a_process_is_healthy_and_not_ready_until_it_serves_and_while_it_ends[127.0.0.1]",
    "tests/unit/cli/process/test_probes.py::test_a_node_is_not_ready_with_a_database_that_is_neither[Role.STARTING]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.process import probes
    from triplicate.runtime import ProbeAnswer

    def ready(self: probes.ProcessState) -> ProbeAnswer:
        facts = self.serving.readiness().facts if self.serving is not None else {}
        return ProbeAnswer(True, {"ready": True, "process": "x", "reasons": [], **facts})

    patch(probes.ProcessState, "ready", ready)
    patch(probes, "READY_ROLES", ("leader", "follower", "starting", "candidate"))
