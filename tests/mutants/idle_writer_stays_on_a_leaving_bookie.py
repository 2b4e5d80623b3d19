"""A writer that appends nothing is not moved off a bookie that is being decommissioned."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.write import departures
from triplicate.client.write.write_handle import WriteHandle
from triplicate.errors import BookieReadOnly

TESTS = [
    "tests/unit/client/write/test_departures.py::test_an_idle_writer_replaces_a_leaving_bookie",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def replace_bookie(writer: WriteHandle, bookie_id: str, reason: BookieReadOnly) -> None:
        pass

    patch(departures, "replace_bookie", replace_bookie)
