"""A new leader serves before it has applied the records that it took over."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import LogWriter
    from triplicate.replica import Replica

    async def replay(self: Replica, writer: LogWriter) -> None:
        return

    patch(Replica, "_replay", replay)
