"""The limbo of a refilled bookie ends although a ledger on it still lacks entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable

TESTS = [
    "tests/unit/autorecovery/test_bookie_refill.py::test_a_ledger_without_an_intact_copy_keeps_the_bookie_in_limbo",
    "tests/unit/autorecovery/test_bookie_refill.py::test_a_bookie_stays_in_limbo_while_a_writer_lives",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import LedgerRepair, bookie_refill

    def not_repaired(repairs: Iterable[LedgerRepair]) -> tuple[LedgerRepair, ...]:
        return ()

    patch(bookie_refill, "not_repaired", not_repaired)
