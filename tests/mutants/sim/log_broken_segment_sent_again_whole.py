"""After a broken segment everything that was not acknowledged is sent again, also what recovery found, so records are there twice."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import Segment
    from triplicate.log.writer import LogWriter

    def recovered(self: LogWriter, closed: Segment) -> None:
        self._queue.extendleft(reversed(self._sent))
        self._sent.clear()

    patch(LogWriter, "_recovered", recovered)
