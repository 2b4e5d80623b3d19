"""A bookie with replaced disks assumes of every ledger in the trash that it may have held it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie import limbo
from triplicate.metadata import ClusterMetadata, Incarnation, TrashedLedger, Versioned, may_have_lost_entries

TESTS = [
    "tests/unit/bookie/offline/test_replacement.py::test_a_ledger_made_since_that_was_deleted_and_comes_back_is_served_as_by_any_bookie",
    "tests/simulation/test_found.py::test_a_replaced_bookie_knows_that_a_ledger_in_the_trash_is_newer_than_its_disks",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def may_have_lost(
        metadata: ClusterMetadata, bookie_id: str, incarnation: Incarnation, ledger_id: int, found: Versioned | TrashedLedger
    ) -> bool:
        return isinstance(found, TrashedLedger) or await may_have_lost_entries(metadata, bookie_id, incarnation, ledger_id, found)

    patch(limbo, "may_have_lost_entries", may_have_lost)
