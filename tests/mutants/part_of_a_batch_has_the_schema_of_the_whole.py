"""The first transactions of a batch are applied with its header, which has the schema behind all of them."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import work_file

TESTS = ["tests/unit/sql/backup/test_work_file.py::test_a_file_ends_between_two_transactions_of_one_entry"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(work_file, "preamble_of_first", lambda preamble, records: preamble)
