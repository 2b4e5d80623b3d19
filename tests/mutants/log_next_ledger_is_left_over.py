"""A writer that ends does not delete the ledger that it created ahead."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_writer_short_of_bookies.py::test_a_next_ledger_that_is_not_needed_is_deleted[True]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.segment_transitions import SegmentTransitions

    async def keep(self: SegmentTransitions) -> None:
        """Delete nothing."""

    patch(SegmentTransitions, "delete_next", keep)
