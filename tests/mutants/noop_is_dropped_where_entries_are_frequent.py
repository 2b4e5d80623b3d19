"""A writer with frequent entries sends no no-op behind the last one, so it stays unread until the next append."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_writer.py::test_a_noop_waits_for_the_next_entry_where_entries_are_frequent"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing.idle_noop_timer import IdleNoopTimer

    schedule = IdleNoopTimer.schedule

    def scheduled(self: IdleNoopTimer) -> None:
        if self._delay is None or self._delay.delay_s() <= self._usual_s:
            schedule(self)

    patch(IdleNoopTimer, "schedule", scheduled)
