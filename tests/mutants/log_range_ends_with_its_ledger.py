"""A reader of a planned range fails if the range's ledger was rewritten, instead of looking up the new one."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/upkeep/test_rewriter.py::test_readers_that_hold_the_old_list_go_on_in_the_new_ledger"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import NoSuchLedger
    from triplicate.log.reading.range_reader import RangeReader

    async def give_up(self: RangeReader, error: NoSuchLedger) -> None:
        raise error

    patch(RangeReader, "_find_again", give_up)
