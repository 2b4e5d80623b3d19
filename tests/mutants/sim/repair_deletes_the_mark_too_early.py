"""A worker deletes the mark of a ledger although fragments of it still lack copies."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("marks_stay_until_repaired",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.autorecovery.ledger_repair import RepairRun
    from triplicate.autorecovery.repair_tools import RepairOutcome, RepairResult

    repair = RepairRun.repair
    left = (RepairOutcome.FAILED, RepairOutcome.GRACE_PERIOD, RepairOutcome.HAS_WRITER)

    async def all_well(self: RepairRun) -> RepairResult:
        result = await repair(self)
        return replace(result, outcome=RepairOutcome.REPAIRED) if result.outcome in left else result

    patch(RepairRun, "repair", all_well)
