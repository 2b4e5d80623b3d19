"""A consumer takes the version that its own cancelled save has left for another process's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/test_consumers.py::test_a_save_that_was_cancelled_does_not_shut_the_consumer_out[True]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import ConsumerFenced
    from triplicate.log.store.consumer_nodes import ConsumerNodes

    write = ConsumerNodes.write

    async def strictly(self: ConsumerNodes, state: Any, stored: Any) -> Any:
        found = await self.read()
        if found is not None and stored is not None and found.version != stored.version:
            raise ConsumerFenced(f"{self} has another version")
        return await write(self, state, stored)

    patch(ConsumerNodes, "write", strictly)
