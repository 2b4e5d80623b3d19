"""A fencing read of a ledger without entries is answered before its fence is durable."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle
    from triplicate.bookie.server.request_processor import RequestProcessor

    journal_fence = RequestProcessor._journal_fence

    def answer_the_empty_at_once(self: RequestProcessor, handle: LedgerHandle, then: Callable[[bool], None]) -> None:
        if handle.last_entry_id < 0:
            then(True)
        else:
            journal_fence(self, handle, then)

    patch(RequestProcessor, "_journal_fence", answer_the_empty_at_once)
