"""A publisher that gives up does not withdraw its request and reports failure; the writer lists it later."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing.request_queue import RequestQueue

    async def leave(self: RequestQueue, token: str) -> None:
        return

    patch(RequestQueue, "withdraw", leave)
