"""A group that is longer than a file never fits: the journal leaves a fresh file behind without a group in it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/property/test_journal_machine.py::test_a_group_longer_than_a_file_begins_a_fresh_file_and_is_its_only_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_machine import FormerCommand, FormerEvent, GroupDue, GroupFormer, StartFile

    step = GroupFormer.step

    def must_fit(self: GroupFormer, event: FormerEvent) -> FormerCommand | None:
        if isinstance(event, GroupDue) and self._file is not None:
            plan = self._plan_of(event.items)
            if self._offset + plan.length > self._file_bytes:
                self._plan = plan
                return StartFile(self.number)
        return step(self, event)

    patch(GroupFormer, "step", must_fit)
