"""A node that has given way while the metadata are silent still names itself as the leader, so clients come back to it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import HostedCopy

TESTS = ["tests/simulation/test_databases.py::test_a_leader_that_only_its_clients_reach_gives_way"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(HostedCopy, "leader_for_clients", property(lambda self: self.leader))
