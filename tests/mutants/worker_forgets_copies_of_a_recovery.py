"""A replication worker does not look at the copies of the recovery that it started, which ends with an ack quorum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.autorecovery import ledger_repair

TESTS = ["tests/unit/autorecovery/test_worker.py::test_copies_that_a_recovery_left_out_are_made"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = ledger_repair.RepairRun._recover

    async def recover(run: Any, metadata: Any) -> None:
        await real(run, metadata)
        run._recovered = {}

    patch(ledger_repair.RepairRun, "_recover", recover)
