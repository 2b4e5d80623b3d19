"""A bookie that lost its fences with its disks takes the adds of old writers (BookKeeper issues 2705 and 2706)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.ledgers import LedgerHandle
    from triplicate.bookie.requests import Requests
    from triplicate.wire import Status

    admit = Requests.admit

    def admit_all(self: Requests, handle: LedgerHandle, master_key: bytes, *, recovery: bool, high_priority: bool) -> Status:
        limbo, handle.limbo = handle.limbo, False
        try:
            return admit(self, handle, master_key, recovery=recovery, high_priority=high_priority)
        finally:
            handle.limbo = limbo

    patch(Requests, "admit", admit_all)
