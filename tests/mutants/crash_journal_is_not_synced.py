"""The journal's groups are written but never synced."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/crash/test_points.py::test_a_few_crash_points_lose_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.journal.group_writer import GroupWriter
    from triplicate.bookie.journal.journal_item import JournalItem
    from triplicate.runtime import File, Group

    form = GroupWriter.form

    class Unsynced:
        def __init__(self, file: File) -> None:
            self.pwrite = file.pwrite

        def sync(self) -> None: ...

    def form_unsynced(self: GroupWriter, items: list[JournalItem]) -> tuple[Group, int]:
        group, count = form(self, items)
        return Group(Unsynced(group.file), group.offset, group.buffers, group.report_written), count  # type: ignore[arg-type]

    patch(GroupWriter, "form", form_unsynced)
