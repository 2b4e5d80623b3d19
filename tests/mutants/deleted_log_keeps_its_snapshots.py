"""The deletion of a log leaves the ledgers of its snapshots behind."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.store.head_store import HeadStore
from triplicate.log.upkeep import truncation
from triplicate.metadata import TreeOperation

TESTS = [
    "tests/unit/log/upkeep/test_log_snapshots.py::test_the_deletion_of_a_log_takes_its_snapshots_along",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def none(store: HeadStore, name: str) -> tuple[frozenset[int], list[TreeOperation]]:
        return frozenset(), []

    patch(truncation, "snapshot_ledgers", none)
