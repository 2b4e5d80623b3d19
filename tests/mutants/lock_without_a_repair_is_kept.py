"""The loop of repairs forgets a lock whose repair was cancelled before its first step."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import ReplicationLoop
from triplicate.metadata import ReplicationLock

TESTS = ["tests/unit/autorecovery/test_replication_loop.py::test_a_lock_whose_repair_never_begins_is_released"]


class Forgetful(dict[int, ReplicationLock]):
    """A memory that seems empty."""

    def __bool__(self) -> bool:
        return False


def apply(patch: Callable[[object, str, object], None]) -> None:
    begin = ReplicationLoop.__init__

    def forgetful(self: ReplicationLoop, *args: object) -> None:
        begin(self, *args)  # type: ignore[arg-type]
        self._unstarted = Forgetful()

    patch(ReplicationLoop, "__init__", forgetful)
