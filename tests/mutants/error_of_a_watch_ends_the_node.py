"""A metadata error in the leader watch of one database ends the whole node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from triplicate.sql.hosting.hosted_database import HostedDatabase

TESTS = ["tests/unit/sql/hosting/test_database_node.py::test_lost_connections_to_the_metadata_end_no_node"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def once(self: HostedDatabase, what: str, work: Callable[[], Awaitable[None]]) -> None:
        await work()

    patch(HostedDatabase, "_retry_forever", once)
