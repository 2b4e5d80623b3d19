"""A node that gets a copy of a database again shows it before the copy has caught up with what the node has shown before."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/hosting/test_balancer.py::test_a_copy_that_comes_back_to_a_node_is_shown_when_it_has_caught_up",
]


def apply(patch: Any) -> None:
    from triplicate.sql.hosting.hosted_database import HostedDatabase

    begin = HostedDatabase.__init__

    def at_once(self: HostedDatabase, *arguments: Any, replaces_another: bool = False) -> None:
        begin(self, *arguments)

    patch(HostedDatabase, "__init__", at_once)
