"""The sweep of orphans deletes ledgers of snapshots that are listed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.store.head_store import HeadStore
from triplicate.log.upkeep import orphans
from triplicate.metadata import TreeOperation

TESTS = [
    "tests/unit/log/upkeep/test_log_snapshots.py::test_the_sweep_finds_the_ledgers_of_killed_attempts_and_spares_those_that_are_listed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def none(store: HeadStore, name: str) -> tuple[frozenset[int], list[TreeOperation]]:
        return frozenset(), []

    patch(orphans, "LISTS_BESIDE", {"snapshot": none})
