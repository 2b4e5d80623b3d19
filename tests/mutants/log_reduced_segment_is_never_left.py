"""The writer of a reduced segment does not roll when the bookies are back."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_writer_short_of_bookies.py::test_a_reduced_segment_is_left_as_soon_as_bookies_are_back"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.rolling_policy import RollingPolicy

    begin = RollingPolicy.begin
    patch(RollingPolicy, "begin", lambda self, now, *, reduced: begin(self, now, reduced=False))
