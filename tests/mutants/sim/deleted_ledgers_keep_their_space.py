"""Entry logs without live entries are not deleted."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("space",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.storage import Storage

    async def delete_nothing(self: Storage, *which: object) -> int:
        return 0

    patch(Storage, "delete_dead_logs", delete_nothing)
