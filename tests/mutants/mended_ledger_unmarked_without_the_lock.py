"""A worker that lost its lock with its session still deletes the mark."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import NoNode
from triplicate.metadata import ReplicationLock, UnderreplicationManager

TESTS = [
    "tests/unit/metadata/test_underreplication.py::test_who_lost_its_lock_does_not_delete_the_mark[memory]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def delete(marks: UnderreplicationManager, lock: ReplicationLock, path: str) -> None:
        try:
            await marks._tree.delete(path, lock.mark.version)
        except NoNode:
            return

    patch(UnderreplicationManager, "_delete_under", delete)
