"""A failure of one database's copy ends the node, and with it every other database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from triplicate.sql.hosting.hosted_database import HostedDatabase

TESTS = ["tests/unit/sql/hosting/test_database_node.py::test_a_failed_copy_is_opened_again_and_clients_hear_why"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def live(self: HostedDatabase) -> Exception | None:
        await self.replica.run()
        return None

    async def once(self: HostedDatabase, what: str, work: Callable[[], Awaitable[None]]) -> None:
        await work()

    patch(HostedDatabase, "_run_replica", live)
    patch(HostedDatabase, "_retry_forever", once)
