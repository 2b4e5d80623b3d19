"""A start reads the index's write-ahead log as it is, although the sync of its last commits may have failed."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/crash/test_failures.py::test_a_start_does_not_use_index_commits_of_a_failed_sync"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.index_vfs import COMMITS_SUFFIX, IndexFile
    from triplicate.runtime import File

    def as_found(self: IndexFile) -> File:
        return self._disk.open(self._path + COMMITS_SUFFIX, create=True)

    copy = IndexFile._copy_pages

    def later(self: IndexFile) -> None:
        if hasattr(self, "_commits"):
            copy(self)

    patch(IndexFile, "_copy_pages", later)
    patch(IndexFile, "_new_commits", as_found)
