"""A bookie fences a ledger in memory and answers, without writing the fence to its journal (BookKeeper issue 2705)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle
    from triplicate.bookie.server.request_processor import RequestProcessor

    def answer_at_once(self: RequestProcessor, handle: LedgerHandle, then: Callable[[bool], None]) -> None:
        then(True)

    patch(RequestProcessor, "_journal_fence", answer_at_once)
