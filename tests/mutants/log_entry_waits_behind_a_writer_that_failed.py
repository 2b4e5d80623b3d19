"""An entry is queued behind records whose sending has just ended the writer, and nobody ever tells what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.log.core.payload_encoder import EncodedEntry
from triplicate.log.writing.entry_builder import PendingEntry
from triplicate.log.writing.log_writer import LogWriter

TESTS = [
    "tests/unit/log/test_writer.py::test_an_append_does_not_wait_for_ever_where_its_ledger_refuses_what_waited_before_it[append_entry]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def enqueue(self: LogWriter, encoded: EncodedEntry, *, matters: bool) -> asyncio.Future[range]:
        self._flush()
        future: asyncio.Future[range] = asyncio.get_running_loop().create_future()
        self._queue.append(PendingEntry(encoded, self._next_offset, future, encoded.size_bytes, matters))
        self._next_offset += encoded.count
        self._pump()
        return future

    patch(LogWriter, "_enqueue", enqueue)
