"""A ledger counts as missing because a metadata server that is behind does not have it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import LedgerStore, Versioned

TESTS = ["tests/unit/metadata/test_layout.py::test_a_ledger_that_another_client_has_just_made_is_found_by_a_server_that_is_behind"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def get(ledgers: LedgerStore, ledger_id: int) -> Versioned:
        found = await ledgers._find(ledger_id)
        if found is None:
            ledgers._raise_missing(ledger_id)
        return found

    patch(LedgerStore, "get", get)
