"""A worker replaces lost bookies only, also where that leaves no machine for the copies of a striped ledger."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/autorecovery/test_ledger_repair_rearranged.py::test_a_striped_ledger_is_rearranged_where_no_single_replacement_keeps_copies_apart"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery import ledger_repair

    def nowhere(*arguments: object) -> None:
        return None

    patch(ledger_repair, "rearrange_bookies", nowhere)
