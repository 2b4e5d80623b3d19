"""A log begins where it is said, also at an offset below 0."""

from collections.abc import Callable

from triplicate.log import logs

TESTS = ["tests/unit/log/test_logs_altered.py::test_no_log_begins_at_what_is_no_offset"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(logs, "check_offset", lambda offset: 0)
