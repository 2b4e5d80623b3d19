"""A node that loses its connection to the metadata while it asks who leads a database ends for good, with everything that it hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

KIND = "databases"
CHECKERS = ("processes",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.hosting.hosted_database import HostedDatabase

    async def once(self: HostedDatabase, what: str, work: Callable[[], Awaitable[None]]) -> None:
        await work()

    patch(HostedDatabase, "_retry_forever", once)
