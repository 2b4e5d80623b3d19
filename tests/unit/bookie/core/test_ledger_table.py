"""The table of ledgers in memory: bounded, and no dearer where many of them are busy."""

from __future__ import annotations

from triplicate.bookie.core.ledger_table import LedgerHandle, LedgerTable
from triplicate.bookie.core.write_cache import WriteCache


def busy(ledger_id: int) -> LedgerHandle:
    return LedgerHandle(ledger_id, b"k" * 20, dirty=True)


class CountedTable(LedgerTable):
    """Counts how often it goes through its handles."""

    scans = 0

    def _shrink(self, keep: int) -> None:
        self.scans += 1
        super()._shrink(keep)


def test_busy_ledgers_are_not_gone_through_for_every_new_one() -> None:
    table = CountedTable(WriteCache(), 100)
    for ledger_id in range(1000):
        table.add(busy(ledger_id))
    assert len(table) == 1000
    assert table.scans <= 100
    # Once a flush has taken them, the next that is loaded finds room.
    table.flushed(table.pop_dirty())
    table.add(busy(1000))
    assert len(table) == 90


def test_idle_ledgers_go_as_soon_as_there_are_too_many() -> None:
    table = CountedTable(WriteCache(), 100)
    for ledger_id in range(1000):
        table.add(LedgerHandle(ledger_id, b"k" * 20))
        assert len(table) <= 100
    assert table.scans <= 100
