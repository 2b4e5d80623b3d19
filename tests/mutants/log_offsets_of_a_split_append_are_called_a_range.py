"""Records appended together are reported as one range of offsets although publishers' records lie between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = ["tests/unit/log/publishing/test_request_server.py::test_records_appended_together_on_both_sides_of_a_roll_have_their_own_offsets"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing import log_writer

    def joined(ranges: Sequence[range]) -> Sequence[int]:
        return range(ranges[0].start, ranges[-1].stop) if ranges else range(0)

    patch(log_writer, "joined", joined)
