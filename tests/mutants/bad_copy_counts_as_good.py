"""A copy that does not match its digest counts as one that a bookie has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from triplicate.autorecovery import LedgerCopies, ledger_check
from triplicate.autorecovery.core import ledger_copies
from triplicate.autorecovery.core.ledger_copies import BookieAnswer
from triplicate.ledger import LedgerMetadata

TESTS = [
    "tests/unit/autorecovery/test_ledger_check.py::test_a_flipped_bit_is_found_by_reading_only",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = ledger_copies.copies_of

    def copies_of(ledger_id: int, metadata: LedgerMetadata, last_entry_id: int, answers: Mapping[str, BookieAnswer]) -> LedgerCopies:
        return original(ledger_id, metadata, last_entry_id, {name: replace(answer, bad=()) for name, answer in answers.items()})

    patch(ledger_check, "copies_of", copies_of)
