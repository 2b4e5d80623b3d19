"""A producer's record has the time of the entry before it: after a pause the first producer that appends is taken for an idle one."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_producers_that_append_after_a_long_pause_are_not_idle"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.log_producer import NumberedRecord
    from triplicate.log.writing.log_writer import LogWriter

    check, add_to = NumberedRecord.check, NumberedRecord.add_to

    def time_before(record: NumberedRecord) -> int:
        writer = record._producer._writer
        assert isinstance(writer, LogWriter)
        return writer._machine.wall_time_us

    patch(NumberedRecord, "check", lambda record, producers, now_us: check(record, producers, time_before(record)))
    patch(
        NumberedRecord,
        "add_to",
        lambda record, builder, producers, sequence, now_us: add_to(record, builder, producers, sequence, time_before(record)),
    )
