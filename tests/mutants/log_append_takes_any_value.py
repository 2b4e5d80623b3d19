"""An append takes a value that is no bytes: its entry cannot be made, and the records that share the entry fail with it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/writing/test_log_writer_refused_values.py::test_a_wrong_value_is_refused_and_the_records_beside_it_are_appended[text]",
    "tests/unit/log/writing/test_log_writer_refused_values.py::test_many_records_with_a_wrong_one_are_refused_before_any_is_sent",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core import payload_encoder

    patch(payload_encoder, "_check_bytes", lambda what, part: None)
