"""A last-add-confirmed of -1 is written as 0, so a ledger's first entries claim that entry 0 is confirmed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import entry

TESTS = ["tests/golden/test_protocol_vectors.py::test_entries_are_encoded_and_decoded"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = entry._pack_header

    def not_below_zero(ledger_id: int, entry_id: int, last_add_confirmed: int, length: int) -> bytes:
        return right(ledger_id, entry_id, max(0, last_add_confirmed), length)

    patch(entry, "_pack_header", not_below_zero)
