"""An authentic entry is accepted wherever it is found: a bookie can repeat an old record in the place of another."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/core/test_encrypted_entries.py::test_an_entry_that_was_moved_within_its_segment_is_refused",
    "tests/unit/log/core/test_encrypted_entries.py::test_an_entry_of_another_ledger_is_refused_unless_the_ledger_is_a_copy",
    "tests/unit/log/core/test_encrypted_entries.py::test_entries_of_joined_staging_ledgers_keep_their_order",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.encrypted_entries import EntryDecoder

    patch(EntryDecoder, "_misplaced", lambda *_, **__: "")
