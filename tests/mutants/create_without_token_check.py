"""A create that finds the ledger's node already there treats it as its own without comparing the creator token."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import NodeExists
from triplicate.ledger import LedgerMetadata, encode_metadata
from triplicate.metadata import LedgerStore, Versioned
from triplicate.metadata.retries import retried

TESTS = ["tests/unit/metadata/test_layout.py::test_a_create_whose_answer_is_lost_does_not_take_anothers_ledger_for_its_own"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def create(store: LedgerStore, ledger_id: int, metadata: LedgerMetadata) -> Versioned:
        path, data = store._path(ledger_id), encode_metadata(metadata)
        try:
            await retried(store._host, lambda: store._tree.create(path, data, parents=True))
        except NodeExists:
            return await store.get(ledger_id)
        return Versioned(metadata, 0)

    patch(LedgerStore, "create", create)
