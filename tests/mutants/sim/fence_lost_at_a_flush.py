"""A flush writes ledger states without their fences, and the journal with the fences is deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_data import LedgerData
    from triplicate.bookie.core.ledger_table import LedgerTable

    pop_dirty = LedgerTable.pop_dirty

    def without_fences(self: LedgerTable) -> list[LedgerData]:
        return [replace(state, fenced=False) for state in pop_dirty(self)]

    patch(LedgerTable, "pop_dirty", without_fences)
