"""A fencing read is answered and journaled, but later adds of the old writer are taken all the same."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.ledgers import LedgerHandle
    from triplicate.bookie.requests import Requests

    def remember_only_the_key(self: Requests, handle: LedgerHandle, master_key: bytes) -> None:
        handle.master_key = master_key

    patch(Requests, "_fence", remember_only_the_key)
