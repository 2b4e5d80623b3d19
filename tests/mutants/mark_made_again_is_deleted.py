"""The end of a repair is repeated after a lost answer, and deletes a newer mark with the same version."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import BadVersion, NoNode
from triplicate.metadata import ReplicationLock, UnderreplicationManager
from triplicate.metadata.core.tree import DeleteNode
from triplicate.metadata.retries import retried

TESTS = [
    "tests/unit/metadata/test_underreplication.py::test_an_end_whose_answer_was_lost_does_not_delete_the_next_mark",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def delete(marks: UnderreplicationManager, lock: ReplicationLock, path: str) -> None:
        try:
            await retried(marks._host, lambda: marks._tree.multi([DeleteNode(path, lock.mark.version)]))
        except (NoNode, BadVersion):
            return

    patch(UnderreplicationManager, "_delete_under", delete)
