"""Garbage collection looks up a ledger by id on a metadata server that may be behind."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import LedgerStore

TESTS = ["tests/unit/bookie/storage/test_garbage.py::test_a_metadata_server_that_is_behind_deletes_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def refresh(ledgers: LedgerStore) -> None:
        return None

    patch(LedgerStore, "refresh", refresh)
