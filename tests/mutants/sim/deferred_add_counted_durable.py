"""A deferred add counts as synced once it is written, so a later force finds nothing to wait for."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_machine import GroupCommit
    from triplicate.bookie.journal.journal import Journal
    from triplicate.bookie.journal.journal_item import JournalItem

    written, release = Journal._written, GroupCommit._release
    counted: dict[int, tuple[int, int]] = {}

    def release_at_once(self: Journal, items: list[JournalItem]) -> None:
        written(self, items)
        early = [item for item in items if item.early]
        count, size = len(early), sum(item.size_bytes for item in early)
        release(self.commit, count, size)
        counted[id(self.commit)] = count, size

    def release_the_rest(self: GroupCommit, items: int, size_bytes: int) -> None:
        count, size = counted.pop(id(self), (0, 0))
        release(self, items - count, size_bytes - size)

    patch(Journal, "_written", release_at_once)
    patch(GroupCommit, "_release", release_the_rest)
