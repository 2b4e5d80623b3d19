"""A rebuilt index contains only the first ledger directory's entries."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.entry_logs import LogContent
    from triplicate.bookie.storage.index_rebuild import IndexRebuild

    read_whole_log = IndexRebuild._read_whole_log

    def of_the_first_directory(self: IndexRebuild, number: int, path: str) -> LogContent | None:
        return read_whole_log(self, number, path) if path.startswith(self._directory + "/") else None

    patch(IndexRebuild, "_read_whole_log", of_the_first_directory)
