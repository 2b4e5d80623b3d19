"""A refill takes the bound of an open ledger from a writer that may choose its entry ids."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/autorecovery/test_bookie_refill.py::test_a_writer_that_may_choose_its_entry_ids_gives_no_bound"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.ledger_repair import RepairRun

    async def always(run: RepairRun, metadata: object) -> bool:
        return True

    patch(RepairRun, "_is_written_in_order", always)
