"""The doctor leaves files on the disk that it checks."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.offline.overlay_disk import OverlayDisk
from triplicate.runtime import File

TESTS = ["tests/unit/cli/server_commands/test_doctor_command.py::test_a_lost_index_is_a_remark_and_not_made"]


def open_file(self: OverlayDisk, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
    return self._below.open(path, create=create, exclusive=exclusive, readonly=readonly)


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(OverlayDisk, "open", open_file)
