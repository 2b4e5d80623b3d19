"""A copy that its bookie cannot read counts as no answer, so that nothing repairs it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client import bookie_copies
from triplicate.client.connection.response_errors import KINDS

TESTS = [
    "tests/unit/autorecovery/test_ledger_check.py::test_copies_that_a_bookie_cannot_read_are_damaged_also_where_it_cannot_list_them",
    "tests/unit/autorecovery/test_ledger_repair_damaged_files.py::test_a_run_with_a_damaged_header_is_found_and_its_entries_are_stored_again",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(bookie_copies, "KINDS_OF_READS", KINDS)
