"""The answer to a fencing read carries the greatest last-add-confirmed known to the bookie, as a plain read's does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

TESTS = [
    "tests/unit/bookie/server/test_request_processor_v3.py::test_plain_reads_carry_the_last_add_confirmed_and_fencing_reads_do_not",
    "tests/unit/bookie/server/test_request_processor_v3.py::test_the_vectors_of_the_protocol_are_answered_to_the_byte",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle
    from triplicate.bookie.server.read_processor import ReadProcessor
    from triplicate.wire import ReadRequest, ReadResponse

    read = ReadProcessor._read

    def as_plain(self: ReadProcessor, request: ReadRequest, handle: LedgerHandle) -> ReadResponse:
        return read(self, replace(request, fence=False), handle)

    patch(ReadProcessor, "_read", as_plain)
