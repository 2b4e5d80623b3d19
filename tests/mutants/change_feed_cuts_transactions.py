"""A call of the change feed ends within a transaction, and the next one goes on after it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_live_sources.py::test_a_reader_goes_on_from_its_position_without_a_cut_transaction"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.sql.core.committed_changes import Wants
    from triplicate.sql.hosting.change_feed import FeedPart, FeedScan

    read = FeedScan.read

    async def cut(self: FeedScan, begin: int, end: int, most: int, wants: Wants, *, wants_schema: bool) -> FeedPart:
        part = await read(self, begin, end, most, wants, wants_schema=wants_schema)
        if not part.transactions:
            return part
        last = part.transactions[-1]
        return FeedPart([*part.transactions[:-1], replace(last, changes=last.changes[:2])], part.position)

    patch(FeedScan, "read", cut)
