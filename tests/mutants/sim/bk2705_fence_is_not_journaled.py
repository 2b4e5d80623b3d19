"""A bookie fences a ledger in memory and answers, without writing the fence to its journal (BookKeeper issue 2705)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.ledgers import LedgerHandle
    from triplicate.bookie.requests import Requests

    def answer_at_once(self: Requests, handle: LedgerHandle, then: Callable[[bool], None]) -> None:
        then(True)

    patch(Requests, "_journal_fence", answer_at_once)
