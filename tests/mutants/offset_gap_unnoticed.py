"""A reader does not check that offsets are continuous, so a missing segment goes unnoticed."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/reading/test_log_reader.py::test_a_missing_entry_is_an_error_and_not_a_gap"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.reading import log_reader, range_reader

    for module in (log_reader, range_reader):
        patch(module, "check_continuity", lambda name, expected_offset, found_offset, ledger_id, entry_id: None)
