"""A server that needs longer than the first wait is never waited for long enough."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.core import server_patience

TESTS = [
    "tests/unit/metadata/core/test_server_patience.py::test_a_slow_server_gets_as_much_time_as_it_takes_and_no_more_than_the_longest",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(server_patience, "GROWTH", 1)
