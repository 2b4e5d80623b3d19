"""A segment is created on the available bookies even if they are fewer than the ack quorum."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_writer_short_of_bookies.py::test_no_segment_has_fewer_copies_than_the_ack_quorum"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.config.log_settings import LogSettings
    from triplicate.log.core.head import Quorums
    from triplicate.log.store import segments

    def as_many_as_there_are(log: LogSettings, writable: int) -> Quorums:
        return Quorums(min(log.ensemble_size, writable), min(log.write_quorum, writable))

    patch(segments, "quorums_for", as_many_as_there_are)
