"""A reader that resumes within an entry starts at the entry's first record, so it sees records again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.reading import log_reader, range_reader
    from triplicate.log.reading.log_entries import LogEntry

    def whole(view: Any, *, first_offset: int, slot: int, count: int, ledger_id: int, entry_id: int, epoch: int) -> LogEntry:
        return LogEntry(view, first_offset=first_offset, slot=0, count=count + slot, ledger_id=ledger_id, entry_id=entry_id, epoch=epoch)

    for module in (range_reader, log_reader):
        patch(module, "LogEntry", whole)
