"""SQLite's error for an exhausted counter is treated as a full disk, and the leader gives up."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = ["tests/unit/sql/executor/test_definitions.py::test_a_counter_at_its_end_is_no_full_disk"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ChangeCapture, "used_up", lambda _self: False)
