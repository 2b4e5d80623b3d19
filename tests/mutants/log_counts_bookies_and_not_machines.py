"""A log that cannot create a segment with all copies counts bookies instead of machines, so it finds no smaller quorums that can be placed."""

from collections.abc import Callable, Sequence

from triplicate.log.store import segments

TESTS = ["tests/unit/log/store/test_segments.py::test_a_segment_has_as_many_copies_as_there_are_machines"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def bookies(machines: Sequence[str]) -> int:
        return len(machines)

    patch(segments, "placeable_copies", bookies)
