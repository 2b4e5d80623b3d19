"""The frame limit excludes the four bytes of the length, so a frame is sent that Apache's side refuses."""

from __future__ import annotations

from collections.abc import Callable

from triplicate import wire
from triplicate.wire import frames

TESTS = [
    "tests/unit/wire/test_frames.py::test_the_limit_counts_the_length_itself",
    "tests/unit/wire/test_frames.py::test_a_whole_frame_too_large_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = frames.next_frame

    def lenient(buffer: bytes, position: int, end: int, max_frame_bytes: int = frames.MAX_FRAME_BYTES) -> tuple[int, int] | None:
        return right(buffer, position, end, max_frame_bytes + frames.LENGTH_BYTES)

    patch(frames, "next_frame", lenient)
    patch(wire, "next_frame", lenient)
