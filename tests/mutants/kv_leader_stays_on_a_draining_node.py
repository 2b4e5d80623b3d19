"""A node that drains keeps the stores that it leads."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.hosting import hosted_stores

TESTS = [
    "tests/unit/kv/hosting/test_store_leaders.py::test_a_node_that_drains_gives_its_leaders_and_its_copies_of_stores_up",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def stay(parts: object, stores: object) -> None:
        return None

    patch(hosted_stores, "move_leaders_away", stay)
