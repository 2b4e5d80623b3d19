"""A reader concludes from a stale head that a segment is missing, or that its position lies beyond the end."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.store.head_store import HeadStore, StoredHead

TESTS = [
    "tests/unit/log/reading/test_log_reader.py::test_a_stale_head_is_read_again_before_a_segment_counts_as_missing",
    "tests/unit/log/reading/test_log_reader.py::test_reading_begins_beyond_the_end_that_a_stale_head_tells",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    read = HeadStore.read

    async def unsynced(self: HeadStore, name: str, *, synced: bool = False) -> StoredHead:
        return await read(self, name)

    patch(HeadStore, "read", unsynced)
