"""Near bookies are read like far ones."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import BookieHealth, ReadOrder

TESTS = [
    "tests/unit/ledger/test_read_order.py::test_the_own_rack_is_read_first_then_the_own_region_then_the_rest",
    "tests/unit/client/test_near_bookies.py::test_the_own_rack_is_read_first[settings0-/north/r1]",
    "tests/unit/client/test_near_bookies.py::test_a_catch_up_reads_all_bookies_of_the_own_region",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def health_alone(self: ReadOrder, bookie_id: str) -> tuple[int, int, bool]:
        health: BookieHealth = self._health
        return health.rank(bookie_id), 0, False

    patch(ReadOrder, "rank", health_alone)
