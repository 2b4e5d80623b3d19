"""Without a location of its own, a client reads from bookies that are away as from others."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate.ledger import ReadOrder

TESTS = [
    "tests/unit/ledger/test_read_order.py::test_bookies_that_are_away_come_last_without_distances_too",
    "tests/unit/client/test_near_bookies.py::test_without_a_location_bookies_that_are_away_are_read_last",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def nothing(order: ReadOrder, absent: Collection[str]) -> None:
        pass

    patch(ReadOrder, "miss", nothing)
