"""A ledger is deleted by its id though a log lists it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.upkeep import ledger_use

TESTS = [
    "tests/unit/log/upkeep/test_ledger_use.py::test_every_ledger_that_a_log_lists_is_kept_and_its_use_is_named",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def plain(client: LedgerClient, store: object, ledger_id: int) -> None:
        await client.delete(ledger_id)

    patch(ledger_use, "delete_ledger", plain)
