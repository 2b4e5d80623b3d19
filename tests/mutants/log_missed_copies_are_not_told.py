"""A segment that lost a bookie is listed as if every entry had all its copies."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/writing/test_log_writer_short_of_bookies.py::test_a_segment_that_went_on_without_a_bookie_is_listed_with_fewer_copies",
    "tests/unit/log/writing/test_log_writer_short_of_bookies.py::test_a_segment_whose_recovery_missed_a_bookie_is_listed_with_fewer_copies",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store import segments
    from triplicate.log.writing import segment_transitions

    patch(segments, "degraded_quorums", lambda log: None)
    patch(segment_transitions, "degraded_quorums", lambda log: None)
