"""A writer whose open ledger is gone closes without an error."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import TriplicateError
from triplicate.log.core.head import LogSegment
from triplicate.log.writing.segment_transitions import SegmentTransitions

TESTS = ["tests/unit/log/upkeep/test_orphans.py::test_a_writer_whose_open_ledger_is_gone_does_not_close_without_error"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def silent(self: SegmentTransitions, segment: LogSegment, error: TriplicateError) -> None:
        return

    patch(SegmentTransitions, "raise_lost", silent)
