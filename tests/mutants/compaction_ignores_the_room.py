"""Compaction copies entries without checking that the disk has room for them."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_compaction.py::test_nothing_is_copied_where_the_disk_lacks_room"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.ledger_storage import LedgerStorage

    patch(LedgerStorage, "has_room", lambda self, size_bytes: True)
