"""A fencing read of a ledger without entries is answered before its fence is durable, as Apache's bookie does."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_request_processor_v2.py::test_a_fencing_read_of_an_unknown_ledger_answers_no_entry_and_fences_it_for_good"
]


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
