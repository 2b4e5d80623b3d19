"""Records that waited for a publish are acknowledged with the offsets that they had before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core import writer_machine
    from triplicate.log.core.writer_machine import PendingEntry, renumber

    before: dict[int, int] = {}

    def remember(entries: deque[PendingEntry[Any]], first_offset: int) -> int:
        for entry in entries:
            before.setdefault(id(entry), entry.first_offset)
        return renumber(entries, first_offset)

    def offsets(self: PendingEntry[Any]) -> range:
        first_offset = before.pop(id(self), self.first_offset)
        return range(first_offset, first_offset + self.encoded.count)

    patch(writer_machine, "renumber", remember)
    patch(PendingEntry, "offsets", property(offsets))
