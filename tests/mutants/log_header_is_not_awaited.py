"""A writer is returned before its segment's header is acknowledged, although another writer may own the log already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/simulation/test_logs.py::test_opening_a_writer_fails_if_it_was_deposed_meanwhile"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.segment_transitions import SegmentTransitions

    begin = SegmentTransitions.begin

    class Hurried:
        """A ledger whose `append` does not wait."""

        def __init__(self, ledger: Any) -> None:
            self._ledger = ledger

        async def append(self, payload: bytes) -> int:
            self._ledger.append_nowait(payload).add_done_callback(lambda done: done.cancelled() or done.exception())
            return 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._ledger, name)

    async def not_awaited(self: SegmentTransitions, ledger: Any, header: bytes) -> None:
        await begin(self, Hurried(ledger), header)

    patch(SegmentTransitions, "begin", not_awaited)
