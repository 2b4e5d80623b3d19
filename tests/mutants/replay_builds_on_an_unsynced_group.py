"""Replay does not rewrite the newest group, so later groups follow one that a power cut may remove."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/property/test_journal_machine.py::test_nothing_synced_is_lost_in_any_order_of_events"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import TornTail
    from triplicate.bookie.core.journal_replay import Command, JournalReplay, ReplayFinished, RewriteGroup

    next_file = JournalReplay._next_file

    def finish_at_once(self: JournalReplay, after: TornTail | None) -> Command:
        command = next_file(self, after)
        return ReplayFinished(self.end, self.groups, self.torn) if isinstance(command, RewriteGroup) else command

    patch(JournalReplay, "_next_file", finish_at_once)
