"""A rearrangement names the bookies that move, without the copies of their new positions."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/autorecovery/test_ledger_repair_rearranged.py::test_a_striped_ledger_is_rearranged_where_no_single_replacement_keeps_copies_apart"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.ledger_copier import CopyJob
    from triplicate.autorecovery.ledger_repair import RepairRun
    from triplicate.ledger import LedgerMetadata

    real = RepairRun._copy

    async def copy(run: RepairRun, metadata: LedgerMetadata, job: CopyJob) -> bool:
        return job.target in job.fragment.ensemble or await real(run, metadata, job)

    patch(RepairRun, "_copy", copy)
