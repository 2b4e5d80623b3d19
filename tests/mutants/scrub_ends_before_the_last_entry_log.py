"""A pass of the scrubber ends before the newest entry log, as if a log that is still being filled were of no concern."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

TESTS = [
    "tests/unit/bookie/core/test_scrub_state.py::test_a_pass_reads_the_logs_that_there_are_at_its_beginning",
    "tests/unit/bookie/test_scrubber.py::test_the_last_entry_log_belongs_to_the_pass",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.scrub_state import ScrubState

    right = ScrubState.begun

    def begun(self: ScrubState, logs: Iterable[int], now_ms: int) -> ScrubState:
        state = right(self, logs, now_ms)
        if self.present is not None or state.present is None:
            return state
        return replace(state, present=replace(state.present, last_log=state.present.last_log - 1))

    patch(ScrubState, "begun", begun)
