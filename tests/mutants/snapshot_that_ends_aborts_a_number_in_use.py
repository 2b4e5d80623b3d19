"""A snapshot that ends while its transaction waits for the writer records the transaction's number as aborted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.reader_pool import ReaderCheckout

TESTS = [
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_a_number_that_was_asked_for_goes_along_when_the_snapshot_ends_before_the_writer_is_free"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def copy_number(self: ReaderCheckout) -> int | None:
        return self.reader.context.number

    patch(ReaderCheckout, "detach_number", copy_number)
