"""A bookie of the own rack is read first although it is slow."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import ReadOrder

TESTS = [
    "tests/unit/ledger/test_read_order.py::test_a_slow_near_bookie_is_read_after_all_healthy_ones",
    "tests/unit/client/test_near_bookies.py::test_a_slow_near_bookie_is_hedged_to_a_far_one_and_avoided[settings0-1]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = ReadOrder.rank

    def distance_first(self: ReadOrder, bookie_id: str) -> tuple[int, int, bool]:
        state, distance, is_readonly = honest(self, bookie_id)
        return distance, state, is_readonly

    patch(ReadOrder, "rank", distance_first)
