"""A group that found no space keeps its sequence number, so the next start finds a gap."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/property/test_journal_machine.py::test_nothing_synced_is_lost_in_any_order_of_events"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GroupPosition
    from triplicate.bookie.core.journal_machine import GroupFormer

    refuse = GroupFormer._refuse

    def keep_the_number(self: GroupFormer, synced: GroupPosition) -> None:
        sequence = self.sequence
        refuse(self, synced)
        self.sequence = sequence

    patch(GroupFormer, "_refuse", keep_the_number)
