"""A batch read waits for a replica that hangs until the read time-out."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.read.batch_read import BatchRead

TESTS = [
    "tests/unit/client/test_read_hedged.py::test_a_reading_does_not_wait_for_a_bookie_that_hangs[0-settings0-3]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(BatchRead, "_overdue", lambda self: None)
