"""An entry's wall time follows a clock that was set back, so a search by time misses entries."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_writer.py::test_wall_time_never_goes_back_not_even_over_segments_and_take_overs"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core import writer_machine
    from triplicate.log.publishing import staging

    for module in (writer_machine, staging):
        patch(module, "wall_time_after", lambda previous_us, clock_us: clock_us)
