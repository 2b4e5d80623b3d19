"""A batch shorter than requested counts as the end of the range."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/client/read/test_batch_read.py::test_a_range_is_read_in_batches_and_what_they_leave_out_is_asked_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.read.batch_read import BatchRead
    from triplicate.client.read.range_read import RangeRead

    done = RangeRead._batch_done

    def and_no_more(self: RangeRead, batch: BatchRead) -> None:
        left_out = batch.count - len(batch.entries)
        batch.count -= left_out
        self.delivered.missing -= left_out
        done(self, batch)

    patch(RangeRead, "_batch_done", and_no_more)
