"""The election node of a process that has ended stays until its session expires."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import Watch
from triplicate.replica import Candidate, Election

TESTS = [
    "tests/unit/replica/test_failure_detector.py::test_the_sign_of_a_process_that_has_ended_is_taken_down_though_its_session_lives",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def wait(self: Election, leader: Candidate, watch: Watch) -> None:
        await watch.changed()

    patch(Election, "_wait_for_loss", wait)
