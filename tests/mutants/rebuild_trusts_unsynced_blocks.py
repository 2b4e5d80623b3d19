"""A rebuild of the index finishes an open log without rewriting blocks which a failed sync may have left in memory only."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_entry_logs_after_a_crash.py::test_blocks_of_a_failed_sync_do_not_damage_the_finished_log"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.file_header import HEADER_BYTES
    from triplicate.bookie.storage import index_rebuild
    from triplicate.bookie.storage.entry_logs import LogContent, finish_log
    from triplicate.runtime import Disk

    def only_finish(disk: Disk, content: LogContent) -> int:
        end = max([HEADER_BYTES, *(block.end for block in content.blocks)])
        size = finish_log(disk, content, end, lambda kind, /, **facts: None)
        assert size is not None
        return size

    patch(index_rebuild, "secure_log", only_finish)
