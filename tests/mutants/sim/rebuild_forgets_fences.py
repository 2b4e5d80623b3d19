"""A rebuilt index contains the ledgers without their fences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.entry_logs import LogContent
    from triplicate.bookie.storage.index_rebuild import IndexRebuild

    read_whole_log = IndexRebuild._read_whole_log

    def without_fences(self: IndexRebuild, number: int, path: str) -> LogContent | None:
        content = read_whole_log(self, number, path)
        if content is not None:
            content.states[:] = [(flush, replace(state, fenced=False)) for flush, state in content.states]
        return content

    patch(IndexRebuild, "_read_whole_log", without_fences)
