"""An idle writer counts an entry sent before a record was acknowledged as one that makes the record readable."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/writing/test_log_writer.py::test_a_noop_sent_together_with_a_record_does_not_replace_the_idle_noop",
    "tests/property/test_writer_machine.py::test_an_entry_sent_together_with_a_record_does_not_make_it_readable",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.writer_machine import WriterMachine

    count_sent = WriterMachine.count_sent

    def count(self: WriterMachine[object], size_bytes: int, wall_time_us: int) -> None:
        count_sent(self, size_bytes, wall_time_us)
        if not self._in_flight[-1].has_readers:
            self.segment.readable = self.segment.entries

    patch(WriterMachine, "count_sent", count)
