"""After a broken segment everything that was not acknowledged is sent again, also what recovery found, so records are there twice."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import LogSegment
    from triplicate.log.writing.log_writer import LogWriter

    def recovered(self: LogWriter, closed: LogSegment) -> None:
        moved = closed.end_offset - (self._sent[0].first_offset if self._sent else closed.end_offset)
        for item in [*self._sent, *self._queue]:
            item.first_offset += moved
        self._next_offset += moved
        self._acknowledged = closed.end_offset
        self._queue.extendleft(reversed(self._sent))
        self._sent.clear()

    patch(LogWriter, "_recovered", recovered)
