"""Time in which the watcher itself was suspended counts as the peer's silence, so a resumed machine deposes every leader."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica.core.silence import SilenceTimer

TESTS = [
    "tests/unit/replica/test_failure_detector.py::test_a_watch_that_slept_itself_begins_again",
    "tests/simulation/test_databases.py::test_nodes_that_were_all_stopped_together_do_not_replace_their_leader",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def observe(self: SilenceTimer, now: float) -> None:
        if self._counted_to > float("-inf"):
            self.silent_s += now - self._counted_to
        self._counted_to = now

    patch(SilenceTimer, "observe", observe)
