"""An idle writer thinks that an entry sent before a record was acknowledged makes it readable, and leaves the record unread."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_writer.py::test_a_noop_sent_together_with_a_record_does_not_replace_the_idle_noop"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.log_writer import LogWriter

    original = LogWriter._pump

    def pump(self: LogWriter) -> None:
        original(self)
        if self._sent and not self._sent[-1].matters:
            self._readable = self._segment_entries

    patch(LogWriter, "_pump", pump)
