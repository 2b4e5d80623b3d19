"""A node ends for good, with all its databases, if it loses its metadata connection while it reads which node leads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

KIND = "databases"
CHECKERS = ("processes",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.hosting.hosted_database import HostedDatabase

    async def once(self: HostedDatabase, what: str, work: Callable[[], Awaitable[None]]) -> None:
        await work()

    patch(HostedDatabase, "_retry_forever", once)
