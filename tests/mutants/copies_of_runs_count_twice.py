"""A rebuild of the index counts a run and its copy as two, so an entry log that compaction emptied seems to hold live entries."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_compaction.py::test_copies_that_a_rebuild_finds_twice_count_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.index import Index

    patch(Index, "remove_copies", lambda self: None)
