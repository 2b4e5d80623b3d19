"""If a chunk of answers ends with a refusal, the writer fails before it counts the acknowledgements before it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.connection.bookie_channel import BookieChannel
from triplicate.client.connection.exchange import Gathered
from triplicate.wire import Status

TESTS = ["tests/unit/client/connection/test_flush_scheduler.py::test_what_was_stored_before_a_refusal_counts"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    handle = BookieChannel._handle_adds

    def broken(self: BookieChannel, ledger_id: int, entry_ids: list[int], status: Status, gathered: Gathered) -> None:
        if status is not Status.OK:
            gathered.clear()
        handle(self, ledger_id, entry_ids, status, gathered)

    patch(BookieChannel, "_handle_adds", broken)
