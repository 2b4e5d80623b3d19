"""A small entry in the write cache keeps the whole received chunk in memory, which is not counted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.core import chunk_entries

TESTS = ["tests/unit/bookie/storage/test_storage_shared_chunks.py::test_a_chunk_of_which_little_is_taken_is_not_kept"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(chunk_entries, "is_most_of", lambda size_bytes, buffer: True)
