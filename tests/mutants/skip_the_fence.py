"""A fencing read is answered and journaled, but later adds of the old writer are accepted."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/simulation/test_losses.py::test_a_living_writer_gets_no_acknowledgement_after_the_ledgers_end"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle
    from triplicate.bookie.server.request_processor import RequestProcessor

    def remember_only_the_key(self: RequestProcessor, handle: LedgerHandle, master_key: bytes) -> None:
        handle.master_key = master_key

    patch(RequestProcessor, "_fence", remember_only_the_key)
