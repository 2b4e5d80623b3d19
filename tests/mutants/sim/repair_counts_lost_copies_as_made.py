"""A worker names a bookie in the place of a lost one, and holds the refill of replaced disks to be done, without any copy."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("acknowledged_entries_always_have_a_copy",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.ledger_copier import CopyJob, LedgerCopier
    from triplicate.autorecovery.ledger_repair import RepairRun
    from triplicate_simulator.workloads.repair import repair_workload

    async def claims(self: LedgerCopier, job: CopyJob) -> None:
        """Nothing is copied."""

    async def is_complete(self: RepairRun, *arguments: object) -> bool:
        return True

    # Nothing heals, which is not to be waited for.
    patch(repair_workload, "HEALING_S", 1.0)
    patch(LedgerCopier, "copy", claims)
    patch(RepairRun, "_refill_chunk", is_complete)
