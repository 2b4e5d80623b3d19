"""A rebuilt index contains only the first ledger directory's entries."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.entry_logs import LogContent
    from triplicate.bookie.storage.ledger_storage import LedgerStorage

    read_whole_log = LedgerStorage._read_whole_log

    def of_the_first_directory(self: LedgerStorage, number: int, path: str) -> LogContent | None:
        return read_whole_log(self, number, path) if path.startswith(self._directories[0] + "/") else None

    patch(LedgerStorage, "_read_whole_log", of_the_first_directory)
