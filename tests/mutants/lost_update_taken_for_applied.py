"""After a lost connection, any newer version of a ledger's metadata counts as this client's own change."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import LedgerStore

TESTS = ["tests/unit/metadata/test_layout.py::test_an_update_whose_answer_is_lost_does_not_take_anothers_change_for_its_own"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def holds(store: LedgerStore, path: str, data: bytes, version: int) -> bool:
        return True

    patch(LedgerStore, "_holds", holds)
