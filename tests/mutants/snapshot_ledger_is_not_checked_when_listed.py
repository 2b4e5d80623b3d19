"""A snapshot is listed although its ledger has been deleted since it was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.log import LogSnapshots

TESTS = [
    "tests/unit/log/upkeep/test_log_snapshots.py::test_a_snapshot_without_its_ledger_is_not_listed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    change = LogSnapshots._change

    async def unchecked(self: LogSnapshots, decide: Any, ledger_id: int | None = None) -> Any:
        return await change(self, decide)

    patch(LogSnapshots, "_change", unchecked)
