"""An entry log that a crash left open gets its footer behind everything that looks complete, also data that was never synced."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_entry_logs_after_a_crash.py::test_a_log_is_cut_at_the_length_that_the_index_knows"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage import index_rebuild
    from triplicate.bookie.storage.entry_logs import LogContent, finish_log
    from triplicate.runtime import Disk, Trace

    def as_found(disk: Disk, content: LogContent, durable_bytes: int, trace: Trace) -> int | None:
        return finish_log(disk, content, max([durable_bytes, *(block.end for block in content.blocks)]), trace)

    patch(index_rebuild, "finish_log", as_found)
