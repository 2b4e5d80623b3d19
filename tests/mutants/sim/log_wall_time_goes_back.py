"""A writer starts with its own clock although its predecessor's was ahead, so a search by time misses entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import LogSegment
    from triplicate.log.core.writer_machine import WriterMachine
    from triplicate.log.publishing import staging

    begin = WriterMachine.__init__

    def forgetful(self: WriterMachine[Any], log: str, owner: str, epoch: int, segment: LogSegment, wall_time_us: int) -> None:
        begin(self, log, owner, epoch, segment, 0)

    patch(WriterMachine, "__init__", forgetful)
    patch(staging, "wall_time_after", lambda previous_us, clock_us: clock_us)
