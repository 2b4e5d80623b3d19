"""The doctor reports directories that a new bookie's first start would create."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.offline.overlay_disk import OverlayDisk

TESTS = ["tests/unit/cli/server_commands/test_doctor_command_new_bookie.py::test_all_is_well_with_directories_that_a_start_makes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(OverlayDisk, "mkdir", lambda self, path: None)
