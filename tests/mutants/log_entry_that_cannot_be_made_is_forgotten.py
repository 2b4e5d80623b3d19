"""The appends of an entry that cannot be made are not answered, and keep their room."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/writing/test_log_writer_refused_values.py::test_records_that_become_wrong_while_they_wait_are_refused_and_others_go_on",
    "tests/unit/log/writing/test_log_writer_refused_values.py::test_numbered_records_that_become_wrong_end_the_writer",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.log_writer import LogWriter

    patch(LogWriter, "_refuse", lambda self, builder, error: None)
