"""A writer's wait counts from its newest entry, so a leader whose log is silent never gives way while clients keep writing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.log.core.writer_machine import WriterMachine

TESTS = ["tests/unit/log/writing/test_writer_state.py::test_a_writer_knows_for_how_long_its_oldest_entry_has_waited"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def newest(self: WriterMachine[Any]) -> float | None:
        pending = self._queue or self._in_flight
        return pending[-1].queued_at if pending else None

    patch(WriterMachine, "waits_since", property(newest))
