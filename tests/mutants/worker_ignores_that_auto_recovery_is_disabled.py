"""A worker repairs marked ledgers although an operator has disabled auto-recovery."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import UnderreplicationManager

TESTS = ["tests/unit/autorecovery/test_replication_loop.py::test_nothing_is_repaired_while_auto_recovery_is_disabled"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def is_enabled(marks: UnderreplicationManager) -> bool:
        return True

    patch(UnderreplicationManager, "is_enabled", is_enabled)
