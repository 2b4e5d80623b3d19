"""An entry's wall time is the clock's, also where the clock of the writer before was ahead, so a search by time misses entries."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core import writer_machine
    from triplicate.log.publishing import staging

    for module in (writer_machine, staging):
        patch(module, "wall_time_after", lambda previous_us, clock_us: clock_us)
