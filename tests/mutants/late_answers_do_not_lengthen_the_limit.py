"""A leader whose answers are late, because its event loop is busy, is taken for silent as soon as any other."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica.core.silence import AnswerDelays

TESTS = ["tests/unit/replica/test_failure_detector.py::test_a_peer_that_has_answered_late_may_be_silent_for_longer"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def usual(self: AnswerDelays, now: float, limit_s: float) -> float:
        return limit_s

    patch(AnswerDelays, "limit_s", usual)
