"""A node knows the administrator that a database had when the node began to host it, and no later one."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/sql/hosting/test_hosted_database_administrator.py::test_nodes_know_the_administrator_as_soon_as_it_is_set_or_replaced",
]


def apply(patch: Any) -> None:
    from triplicate.sql.hosting.hosted_database import HostedDatabase

    async def deaf(self: HostedDatabase) -> None:
        return None

    patch(HostedDatabase, "_watch_entry", deaf)
