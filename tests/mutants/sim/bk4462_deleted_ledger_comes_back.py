"""A bookie forgets that a ledger was fenced when the ledger is deleted, so its writer goes on (BookKeeper issue 4462)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.ledgers import LedgerTable

    patch(LedgerTable, "was_fenced_and_deleted", lambda self, ledger_id: False)
