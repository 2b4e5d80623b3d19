"""A consumer that was taken over saves its position all the same, over that of its successor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/test_consumers.py::test_a_consumer_that_was_taken_over_cannot_save_and_is_told_by_whom"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.log.store.consumer_nodes import ConsumerNodes, StoredConsumer
    from triplicate.metadata.core.tree import ANY_VERSION

    write = ConsumerNodes.write

    async def nothing(self: ConsumerNodes, *_: Any) -> list[Any]:
        return []

    async def blindly(self: ConsumerNodes, state: Any, stored: StoredConsumer | None) -> Any:
        return await write(self, state, None if stored is None else replace(stored, version=ANY_VERSION))

    patch(ConsumerNodes, "_hold", nothing)
    patch(ConsumerNodes, "write", blindly)
