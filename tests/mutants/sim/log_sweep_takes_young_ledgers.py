"""The sweep deletes unlisted ledgers of any age, and a change lists ledgers without checking that they exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"
CHECKERS = ("acknowledged_records_stay", "readers_miss_nothing", "batches_are_there_once", "progress")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing.publication import Candidates
    from triplicate.log.store.head_store import HeadStore
    from triplicate.log.upkeep.orphans import Sweep

    async def unmarked(self: Candidates, stored: Any) -> list[Any]:
        return []

    patch(Sweep, "_grace_ms", lambda self, metadata: 0.0)
    patch(Candidates, "marks", unmarked)
    patch(HeadStore, "_ledger_checks", lambda self, change, extra: [])
