"""An entry is queued behind records whose sending has just failed the writer, so its append never completes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.log.core.payload_encoder import EncodedEntry
from triplicate.log.writing.log_writer import LogWriter

TESTS = [
    "tests/unit/log/writing/test_log_writer.py::test_an_append_does_not_wait_for_ever_where_its_ledger_refuses_what_waited_before_it[append_entry]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    enqueue = LogWriter._enqueue

    def unchecked(self: LogWriter, encoded: EncodedEntry, size_bytes: int, *, has_readers: bool) -> asyncio.Future[range]:
        self._flush()
        if self.failure is not None:
            return asyncio.get_running_loop().create_future()
        return enqueue(self, encoded, size_bytes, has_readers=has_readers)

    patch(LogWriter, "_enqueue", unchecked)
