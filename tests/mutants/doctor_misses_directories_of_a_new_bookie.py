"""The doctor calls directories wrong that a new bookie does not have yet, and that its start makes."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.offline.overlay_disk import OverlayDisk

TESTS = ["tests/unit/cli/server_commands/test_doctor_command_new_bookie.py::test_all_is_well_with_directories_that_a_start_makes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(OverlayDisk, "mkdir", lambda self, path: None)
