"""An attempt to lock an under-replicated ledger that is cancelled or fails leaves its lock to the end of the session."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import UnderreplicationManager

TESTS = [
    "tests/unit/metadata/test_underreplication.py::test_an_attempt_to_lock_that_is_cancelled_leaves_no_lock",
    "tests/unit/metadata/test_underreplication.py::test_an_attempt_to_lock_that_fails_leaves_no_lock",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def undo(self: UnderreplicationManager, ledger_id: int) -> None:
        pass

    patch(UnderreplicationManager, "_undo", undo)
