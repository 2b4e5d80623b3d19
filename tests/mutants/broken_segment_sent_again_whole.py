"""After a segment fails, the writer resends every unacknowledged entry, also those that recovery found: records are duplicated."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/writing/test_log_writer.py::test_a_broken_segment_is_recovered_and_what_did_not_survive_is_sent_again[True]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import LogSegment
    from triplicate.log.core.writer_machine import WriterMachine

    def adopt(self: WriterMachine[object], closed: LogSegment) -> None:
        self._queue.extendleft(reversed(self._in_flight))
        self._in_flight.clear()

    patch(WriterMachine, "_adopt_recovery", adopt)
