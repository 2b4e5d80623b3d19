"""A change does not delete the pages that it replaces; only a sweep does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.log.store.head_store import HeadStore

TESTS = [
    "tests/unit/log/upkeep/test_truncation.py::test_pages_that_a_change_replaces_are_deleted_with_it",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def left(self: HeadStore, name: str, log_id: str, numbers: Sequence[int]) -> None:
        return

    patch(HeadStore, "_delete_pages", left)
