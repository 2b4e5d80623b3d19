"""A frame slightly above the limit closes its connection, so a writer considers the bookie broken and tries the next one without end."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_oversized_frame.py::test_the_answer_of_version_3_carries_the_transaction",
    "tests/unit/client/test_client_large_entries.py::test_an_entry_larger_than_the_bookies_take_ends_the_append_and_replaces_nobody[v2]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server import frame_processor

    patch(frame_processor, "excess_of", lambda *arguments: 0)
