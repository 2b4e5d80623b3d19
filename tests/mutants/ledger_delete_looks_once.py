"""A log may list a ledger between the search for it and its deletion."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.upkeep import ledger_use

TESTS = [
    "tests/unit/log/upkeep/test_ledger_use.py::test_a_ledger_that_is_listed_behind_the_search_for_it_is_kept",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def unchecked(client: LedgerClient, store: HeadStore, ledger_id: int) -> None:
        await ledger_use.require_unlisted(store, ledger_id)
        await client.delete(ledger_id)

    patch(ledger_use, "delete_ledger", unchecked)
