"""An index that is made anew holds what stands in the first ledger directory."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.entry_logs import LogContent
    from triplicate.bookie.stored import StoredEntries

    read_whole_log = StoredEntries._read_whole_log

    def of_the_first_directory(self: StoredEntries, number: int, path: str) -> LogContent | None:
        return read_whole_log(self, number, path) if path.startswith(self._directories[0] + "/") else None

    patch(StoredEntries, "_read_whole_log", of_the_first_directory)
