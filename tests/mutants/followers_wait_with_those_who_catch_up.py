"""Reads of recent entries wait behind the throttle for reads from entry logs."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_read_throttle.py::test_what_just_came_is_read_at_once_while_another_catches_up"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.read_processor import ReadProcessor

    patch(ReadProcessor, "_is_urgent", lambda self, asked: False)
    patch(ReadProcessor, "_cached_batch", lambda self, request, handle: None)
