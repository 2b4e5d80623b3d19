"""A stream saves its position over that of a consumer that goes on there, so that the consumer passes over records."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_watched_position.py::test_a_consumer_that_is_used_is_left_alone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import watched_position

    patch(watched_position, "STREAM_TOKEN", "")
