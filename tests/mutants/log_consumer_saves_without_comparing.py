"""A consumer that was taken over saves its position all the same, over that of its successor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/test_consumers.py::test_a_consumer_that_was_taken_over_cannot_save_and_is_told_by_whom"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.consumer_nodes import ConsumerNodes
    from triplicate.metadata.core.tree import ANY_VERSION

    write = ConsumerNodes.write

    async def blindly(self: ConsumerNodes, state: Any, version: int | None) -> Any:
        return await write(self, state, None if version is None else ANY_VERSION)

    patch(ConsumerNodes, "write", blindly)
