"""A node ends for good if it loses its metadata connection while it reads which node leads a database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from triplicate.sql.hosting.hosted_database import HostedDatabase

TESTS = ["tests/simulation/test_found_in_databases.py::test_a_lost_connection_ends_no_database_node"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def once(self: HostedDatabase, what: str, work: Callable[[], Awaitable[None]]) -> None:
        await work()

    patch(HostedDatabase, "_retry_forever", once)
