"""A log that is to have more copies does not mark the segments that lack them, so nobody makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/test_logs_altered.py::test_a_living_writer_uses_other_settings_from_its_next_segment_on[True]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.log import logs
    from triplicate.log.core.head_changes import Change

    def settings_alone(head: Any, settings: Any, pages: Any, token: str) -> Change:
        return Change(replace(head, settings=settings, token=token))

    patch(logs, "alter_settings", settings_alone)
