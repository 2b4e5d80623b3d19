"""A connection that has used version 2 may switch back to version 3."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_server_connection_bad_input.py::test_a_connection_speaks_version_3_until_it_sends_something_older_and_then_never_again"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.dialects import V3Dialect
    from triplicate.bookie.server.frame_processor import FrameProcessor

    process = FrameProcessor.process

    def look_again(self: FrameProcessor, data: bytes) -> None:
        if data[4:5] == b"\x0a":
            self._dialect = V3Dialect()
        process(self, data)

    patch(FrameProcessor, "process", look_again)
