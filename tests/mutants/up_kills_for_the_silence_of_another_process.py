"""The silence of a process goes by its name, so the next process of the name is killed for it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.supervision.supervisor import Silence, Supervisor

TESTS = [
    "tests/unit/cli/supervision/test_supervisor.py::test_a_process_that_is_silent_for_long_is_reported_then_writes_its_stacks_and_is_killed"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    judge = Supervisor._judge
    since: dict[str, float] = {}

    def keeping(self: Supervisor, silence: Silence, now: float) -> None:
        silence.since = since.setdefault(silence.process.member.name, silence.since)
        judge(self, silence, now)

    patch(Supervisor, "_judge", keeping)
