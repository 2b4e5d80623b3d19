"""After a segment fails, the writer resends every unacknowledged entry, also those that recovery found: records are duplicated."""

from __future__ import annotations

from collections.abc import Callable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import LogSegment
    from triplicate.log.core.writer_machine import WriterMachine

    def adopt(self: WriterMachine[object], closed: LogSegment) -> None:
        moved = closed.end_offset - (self._in_flight[0].first_offset if self._in_flight else closed.end_offset)
        for entry in [*self._in_flight, *self._queue]:
            entry.first_offset += moved
        self.next_offset += moved
        self.acknowledged_offset = closed.end_offset
        self._queue.extendleft(reversed(self._in_flight))
        self._in_flight.clear()

    patch(WriterMachine, "_adopt_recovery", adopt)
