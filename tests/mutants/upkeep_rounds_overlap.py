"""A requested round of garbage collection runs beside the one under way."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.storage.garbage import CollectionReport, GarbageCollector

TESTS = [
    "tests/unit/cli/server_commands/test_bookie_upkeep.py::test_the_state_shows_a_round_that_runs_and_a_second_round_waits_for_it",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def run_round(collector: GarbageCollector) -> CollectionReport:
        collector.running_since_ms = collector._now_ms()
        return await collector._collect(collector.running_since_ms)

    patch(GarbageCollector, "run_round", run_round)
