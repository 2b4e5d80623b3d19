"""The list of snapshots is written without comparing versions, so another node's snapshot is lost from it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import LogSnapshots
from triplicate.metadata import CreateNode, SetData, TreeOperation

TESTS = [
    "tests/unit/log/upkeep/test_log_snapshots.py::test_a_list_that_changes_between_reading_and_writing_is_read_again",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def write(self: LogSnapshots, data: bytes, version: int | None) -> TreeOperation:
        return CreateNode(self._path, data) if version is None else SetData(self._path, data)

    patch(LogSnapshots, "_write", write)
