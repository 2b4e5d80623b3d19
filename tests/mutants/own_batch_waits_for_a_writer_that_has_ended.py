"""A batch of a writer that ends before the roll that lists it waits for ever."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.publishing.own_batches import OwnBatches

TESTS = [
    "tests/unit/log/publishing/test_own_batches.py::test_a_writer_that_ends_leaves_nobody_waiting",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(OwnBatches, "end", lambda self, error: None)
