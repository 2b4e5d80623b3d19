"""A roll that lists publishers' requests overwrites any version of the head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.head_store import HeadStore, StoredHead
    from triplicate.metadata import ANY_VERSION, DeleteNode, SetData

    swap = HeadStore._swap

    async def overwrite(self: HeadStore, name: str, stored: StoredHead, head: Any, operations: Any) -> StoredHead:
        if head.open is not None and any(isinstance(operation, DeleteNode) for operation in operations):
            operations = [SetData(operations[0].path, operations[0].data, ANY_VERSION), *operations[1:]]
        return await swap(self, name, stored, head, operations)

    patch(HeadStore, "_swap", overwrite)
