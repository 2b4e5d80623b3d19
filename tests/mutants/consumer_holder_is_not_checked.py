"""A change of a consumer's position checks its version, and not whose it is: it is applied to the next consumer of the name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = [
    "tests/unit/log/store/test_consumer_nodes_identity.py::test_the_holder_of_a_deleted_consumer_saves_nothing_into_the_next_one",
    "tests/unit/log/store/test_consumer_nodes_identity.py::test_a_late_change_does_nothing_to_the_next_consumer",
    "tests/unit/log/store/test_consumer_nodes_identity.py::test_a_late_opening_takes_over_the_position_of_the_consumer_that_is_there",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.consumer_nodes import ConsumerNodes

    async def nothing(self: ConsumerNodes, *_: Any) -> list[Any]:
        return []

    patch(ConsumerNodes, "_hold", nothing)
    patch(ConsumerNodes, "_end_of_hold", nothing)
