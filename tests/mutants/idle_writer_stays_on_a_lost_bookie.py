"""A writer that appends nothing never replaces a lost bookie, so that the copies of its ledger cannot be made again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.write import departures
from triplicate.client.write.write_handle import WriteHandle

TESTS = [
    "tests/unit/client/write/test_departures.py::test_an_idle_writer_replaces_a_lost_bookie",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def replace_lost_bookie(writer: WriteHandle, bookie_id: str) -> None:
        pass

    patch(departures, "replace_lost_bookie", replace_lost_bookie)
