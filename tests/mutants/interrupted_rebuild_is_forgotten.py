"""The remains of an interrupted rebuild are deleted, and with them the old index's knowledge of entry logs."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.offline import index_backup

TESTS = ["tests/unit/bookie/offline/test_index_backup.py::test_what_the_old_index_knew_is_still_known"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(index_backup, "is_interrupted", lambda disk, path, cache_bytes: False)
