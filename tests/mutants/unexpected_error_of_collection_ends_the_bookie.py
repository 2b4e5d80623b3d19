"""An unexpected error of garbage collection or compaction ends the bookie, although no data are at risk."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

TESTS = ["tests/unit/bookie/test_background.py::test_a_task_that_met_an_unexpected_error_begins_again_after_a_growing_pause"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie import bookie

    async def run_once(host: object, metrics: object, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await run()

    patch(bookie, "keep_running", run_once)
