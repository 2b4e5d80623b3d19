"""The no-op behind a rare entry waits for an entry that does not come, so readers see the rare entry late."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/core/test_noop_delay.py::test_the_first_entries_after_a_pause_are_not_waited_for"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.noop_delay import NoopDelay

    patch(NoopDelay, "delay_s", lambda self: max(self._usual_s, self._longest_s))
