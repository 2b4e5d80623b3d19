"""Retention reads every segment for its size, although the references to pages carry sums."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.core.head import Head
from triplicate.log.store.head_store import HeadStore
from triplicate.log.upkeep import truncation

TESTS = [
    "tests/unit/log/publishing/test_publication_cost.py::test_a_publish_reads_as_much_of_a_long_log_as_of_a_short_one[settings1-app]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    offset = truncation._retention_offset

    async def all_of_it(store: HeadStore, name: str, head: Head, most: int | None) -> int | None:
        await store.pages(name, head)
        return await offset(store, name, head, most)

    patch(truncation, "_retention_offset", all_of_it)
