"""A dump opens the index of a bookie itself, and so copies its commits into the database file."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.offline.index_backup import ReadOnlyIndex
from triplicate.bookie.storage.index import Index
from triplicate.runtime.real_disk import RealDisk

TESTS = ["tests/unit/cli/server_commands/test_dump_command.py::test_each_dump_prints_json_lines_and_changes_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def enter(opened: ReadOnlyIndex) -> Index:
        opened._index = Index(RealDisk(), *opened._arguments)
        return opened._index

    patch(ReadOnlyIndex, "__enter__", enter)
