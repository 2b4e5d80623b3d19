"""A client treats the refusal of an oversized entry as a fault of the bookie."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/client/test_client_large_entries.py::test_an_entry_larger_than_the_bookies_take_ends_the_append_and_replaces_nobody[v2]",
    "tests/unit/client/test_client_large_entries.py::test_an_entry_larger_than_the_bookies_take_ends_the_append_and_replaces_nobody[v3]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write import add_pipeline

    patch(add_pipeline, "too_large", lambda *arguments: None)
