"""Replay treats the last group of a journal file as torn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from triplicate.bookie.core.file_header import HEADER_BYTES

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GroupScanner, JournalGroup

    groups = GroupScanner.groups

    def all_but_the_last(self: GroupScanner, after_sequence: int | None, start: int = HEADER_BYTES) -> Iterator[JournalGroup]:
        before: JournalGroup | None = None
        for group in groups(self, after_sequence, start):
            if before is not None:
                yield before
            before = group

    patch(GroupScanner, "groups", all_but_the_last)
