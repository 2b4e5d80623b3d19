"""A cancelled batch read continues to try further slow replicas."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.read.batch_read import BatchRead

TESTS = ["tests/unit/client/test_read_hedged.py::test_a_reading_that_was_given_up_asks_nobody_else"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = BatchRead._request_next

    def regardless(self: BatchRead) -> None:
        self._is_wanted = lambda: True
        real(self)

    patch(BatchRead, "_request_next", regardless)
