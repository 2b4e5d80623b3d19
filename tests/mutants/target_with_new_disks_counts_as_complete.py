"""A worker names a target whose disks were replaced since the copies were made, and deletes the mark: the copies are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from triplicate.autorecovery.ledger_repair import RepairRun

TESTS = ["tests/unit/autorecovery/test_ledger_copier.py::test_copies_that_were_lost_before_they_were_named_are_made_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def trust(run: RepairRun, targets: Iterable[str]) -> None:
        return

    patch(RepairRun, "_look_again_at_replaced", trust)
