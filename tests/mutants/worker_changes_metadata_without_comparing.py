"""A replication worker writes the metadata that it read before the copying, and ignores what others have changed since."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from triplicate.autorecovery import ledger_repair

TESTS = ["tests/unit/autorecovery/test_worker.py::test_a_change_by_another_worker_is_not_undone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = ledger_repair.RepairRun._name_targets

    async def blind(run: Any, found: Any, *arguments: Any, **named: Any) -> None:
        present = await run._ledgers.get(run._ledger_id)
        await real(run, dataclasses.replace(found, version=present.version), *arguments, **named)

    patch(ledger_repair.RepairRun, "_name_targets", blind)
